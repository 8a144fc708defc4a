"""PUBLISH and PUBREL from a client: the checks, the Publish command, the acknowledgement, and publishers that wait."""
