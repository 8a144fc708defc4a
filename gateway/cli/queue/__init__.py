"""`rfhbridge queue`: messages and queues (commands), the store behind them (store), and dead letters (redrive)."""
