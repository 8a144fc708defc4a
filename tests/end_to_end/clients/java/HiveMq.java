import com.hivemq.client.mqtt.MqttClient;
import com.hivemq.client.mqtt.MqttClientBuilder;

/** HiveMQ's client, which publishes and subscribes at once: each version of MQTT has types of its own in it. */
final class HiveMq {
    public static void main(String[] arguments) throws Exception {
        Given given = new Given(arguments);
        if (given.version.equals("5")) {
            HiveMq5.run(given);
        } else {
            HiveMq3.run(given);
        }
    }

    static MqttClientBuilder reach(Given given, String role) throws Exception {
        MqttClientBuilder builder =
                MqttClient.builder().identifier(given.client(role)).serverHost("127.0.0.1").serverPort(given.port);
        if (given.isSecure()) {
            builder = builder.sslConfig().trustManagerFactory(given.trust()).applySslConfig();
        }
        return given.isWebSocket() ? builder.webSocketConfig().serverPath("mqtt").applyWebSocketConfig() : builder;
    }
}
