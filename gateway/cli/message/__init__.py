"""The commands that read one message: `inspect`, `lint`, `convert`, and their output."""
