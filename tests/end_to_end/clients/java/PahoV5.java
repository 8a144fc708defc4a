import java.util.concurrent.Semaphore;
import org.eclipse.paho.mqttv5.client.IMqttToken;
import org.eclipse.paho.mqttv5.client.MqttActionListener;
import org.eclipse.paho.mqttv5.client.MqttAsyncClient;
import org.eclipse.paho.mqttv5.client.MqttCallback;
import org.eclipse.paho.mqttv5.client.MqttConnectionOptions;
import org.eclipse.paho.mqttv5.client.MqttDisconnectResponse;
import org.eclipse.paho.mqttv5.client.persist.MemoryPersistence;
import org.eclipse.paho.mqttv5.common.MqttException;
import org.eclipse.paho.mqttv5.common.MqttMessage;
import org.eclipse.paho.mqttv5.common.packet.MqttProperties;

/** Eclipse Paho's client of MQTT 5 in Java, which publishes and subscribes at once. */
final class PahoV5 {
    /** It refuses more than the gateway's Receive Maximum at once; we stay below. */
    private static final int IN_FLIGHT = 10;

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
        MqttConnectionOptions options = new MqttConnectionOptions();
        if (given.isSecure()) {
            options.setSocketFactory(given.secureSockets());
        }
        MqttAsyncClient client = new MqttAsyncClient(given.address(), given.client(role), new MemoryPersistence());
        client.setCallback(new MqttCallback() {
            @Override
            public void disconnected(MqttDisconnectResponse told) {
                Given.fail(new IllegalStateException(told.toString()));
            }

            @Override
            public void mqttErrorOccurred(MqttException error) {
                Given.fail(error);
            }

            @Override
            public void messageArrived(String topic, MqttMessage message) {
                given.received(message.getPayload(), message.getQos());
            }

            @Override
            public void deliveryComplete(IMqttToken token) {}

            @Override
            public void connectComplete(boolean isAgain, String address) {}

            @Override
            public void authPacketArrived(int reason, MqttProperties properties) {}
        });
        client.connect(options).waitForCompletion();
        return client;
    }

    private static MqttActionListener answer(Given given, Semaphore room) {
        return new MqttActionListener() {
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
