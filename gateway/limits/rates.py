"""How often something may happen: token buckets, one for each key, in bounded memory."""

from collections import OrderedDict
from typing import Final

#: Seconds' worth of tokens that a bucket holds: as much may come at once, when a fleet comes back for example.
BURST_S: Final = 10
#: Buckets that are kept, at some 250 bytes each; the one that was not used for longest is forgotten, and full again.
KEPT_BUCKETS: Final = 16_384


class TokenBuckets:
    """A bucket for each key. `rate` is tokens a second; 0: everything may happen."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._capacity = float(rate * BURST_S)
        #: Tokens, and when that was, in seconds; the bucket used last stands last.
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: bytes, now_s: float) -> bool:
        """Takes a token; False where there is none, and then none is taken. `now_s`: a clock that never goes back."""
        if not self._rate:
            return True
        tokens, at_s = self._buckets.pop(key, (self._capacity, now_s))
        tokens = min(self._capacity, tokens + (now_s - at_s) * self._rate)
        is_there = tokens >= 1
        self._buckets[key] = (tokens - 1 if is_there else tokens, now_s)
        if len(self._buckets) > KEPT_BUCKETS:
            self._buckets.popitem(last=False)
        return is_there
