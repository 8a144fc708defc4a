"""The commands that read one message: `inspect`, `lint`, `convert`, and what they show."""
