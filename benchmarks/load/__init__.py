"""Load on a server: generators, each a process of its own, and what attacks it."""
