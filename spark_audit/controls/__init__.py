"""The controls: one module each, a function from a DataFrame to the DataFrame of its violations."""
