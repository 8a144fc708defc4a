"""Commands of the gateway to brokers, here and at targets; their replies, and what MQ refuses."""
