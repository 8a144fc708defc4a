"""Load on a server: the generator in C and what starts it, idle connections, and what attacks it."""
