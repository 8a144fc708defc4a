"""The MQI on the embedded queue manager: handles, options and calls as IBM MQ's programs know them."""
