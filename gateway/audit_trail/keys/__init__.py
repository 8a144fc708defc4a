"""The keys of a trail: two sign its digests, and one keeps personal data secret."""
