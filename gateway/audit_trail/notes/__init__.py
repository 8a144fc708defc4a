"""Notes of what happens, made where it happens and committed with it; the exporter makes records of them."""
