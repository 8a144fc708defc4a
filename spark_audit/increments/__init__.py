"""Increments: an audit goes on from the state of an earlier one, and reads the segments behind it.

    state       what is kept between two audits: a file that the auditor's key signs
    carried     what of a trail the state keeps: everything that a later record may still be compared with
    given       a state in the tables of an engine, and whether a record names something that the state does not have
    trails      the files that an increment reads, and whether the trail still goes on where the state ended
    checkpoint  the state of each trail of a stream, and how a batch is whole or not at all

The state has whole things: if one record of an exchange or message is carried, all of them are. What has ended is not
carried. So an increment finds what one audit of the whole trail finds, if no new record names something that had ended
before the state. True trails have no such record. Where there is one, the whole trail is read, and what the earlier
audits told is not told again.
"""
