import java.util.concurrent.Semaphore;
import org.eclipse.paho.client.mqttv3.IMqttActionListener;
import org.eclipse.paho.client.mqttv3.IMqttDeliveryToken;
import org.eclipse.paho.client.mqttv3.IMqttToken;
import org.eclipse.paho.client.mqttv3.MqttAsyncClient;
import org.eclipse.paho.client.mqttv3.MqttCallback;
import org.eclipse.paho.client.mqttv3.MqttConnectOptions;
import org.eclipse.paho.client.mqttv3.MqttMessage;
import org.eclipse.paho.client.mqttv3.persist.MemoryPersistence;

/** Eclipse Paho's client of MQTT 3.1 and 3.1.1 in Java, which publishes and subscribes at once. */
final class PahoV3 {
    /** It refuses more than this at once. */
    private static final int IN_FLIGHT = 100;

    public static void main(String[] arguments) throws Exception {
        Given given = new Given(arguments);
        MqttAsyncClient watcher = connect(given, "watcher");
        watcher.subscribe(given.name + "/#", 2).waitForCompletion();
        MqttAsyncClient publisher = connect(given, "publisher");
        Semaphore room = new Semaphore(IN_FLIGHT);
        for (int number = 0; number < given.count; number++) {
            room.acquire();
            publisher.publish(
                    given.topic(number), given.payload(number), given.qos(number), false, number, answer(given, room));
        }
        given.awaitAcknowledgements();
        publisher.publish(given.name + "/end", Given.LAST.getBytes(), 2, false).waitForCompletion();
        given.end();
    }

    private static MqttAsyncClient connect(Given given, String role) throws Exception {
        MqttConnectOptions options = new MqttConnectOptions();
        options.setMqttVersion(
                given.version.equals("3.1") ? MqttConnectOptions.MQTT_VERSION_3_1 : MqttConnectOptions.MQTT_VERSION_3_1_1);
        options.setMaxInflight(IN_FLIGHT);
        if (given.isSecure()) {
            options.setSocketFactory(given.secureSockets());
        }
        MqttAsyncClient client = new MqttAsyncClient(given.address(), given.client(role), new MemoryPersistence());
        client.setCallback(new MqttCallback() {
            @Override
            public void connectionLost(Throwable cause) {
                Given.fail(cause);
            }

            @Override
            public void messageArrived(String topic, MqttMessage message) {
                given.received(message.getPayload(), message.getQos());
            }

            @Override
            public void deliveryComplete(IMqttDeliveryToken token) {}
        });
        client.connect(options).waitForCompletion();
        return client;
    }

    private static IMqttActionListener answer(Given given, Semaphore room) {
        return new IMqttActionListener() {
            @Override
            public void onSuccess(IMqttToken token) {
                given.acknowledged((Integer) token.getUserContext());
                room.release();
            }

            @Override
            public void onFailure(IMqttToken token, Throwable cause) {
                Given.fail(cause);
            }
        };
    }
}
