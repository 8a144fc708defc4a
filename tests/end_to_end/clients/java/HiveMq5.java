import com.hivemq.client.mqtt.datatypes.MqttQos;
import com.hivemq.client.mqtt.mqtt5.Mqtt5Client;
import com.hivemq.client.mqtt.mqtt5.message.publish.Mqtt5Publish;
import io.reactivex.Flowable;

/** HiveMQ's client of MQTT 5. */
final class HiveMq5 {
    static void run(Given given) throws Exception {
        connect(given, "watcher").toAsync().subscribeWith()
                .topicFilter(given.name + "/#").qos(MqttQos.EXACTLY_ONCE)
                .callback(message -> given.received(message.getPayloadAsBytes(), message.getQos().getCode()))
                .send().join();
        Mqtt5Client publisher = connect(given, "publisher");
        // One flow keeps the order.
        publisher.toRx().publish(Flowable.range(0, given.count).map(number -> message(given, number)))
                .blockingForEach(result -> {
                    result.getError().ifPresent(Given::fail);
                    given.acknowledged(Integer.parseInt(new String(result.getPublish().getPayloadAsBytes())));
                });
        publisher.toAsync().publishWith()
                .topic(given.name + "/end").qos(MqttQos.EXACTLY_ONCE).payload(Given.LAST.getBytes()).send().join();
        given.end();
    }

    private static Mqtt5Client connect(Given given, String role) throws Exception {
        Mqtt5Client client = HiveMq.reach(given, role).useMqttVersion5().build();
        client.toAsync().connect().join();
        return client;
    }

    private static Mqtt5Publish message(Given given, int number) {
        return Mqtt5Publish.builder()
                .topic(given.topic(number)).qos(MqttQos.fromCode(given.qos(number))).payload(given.payload(number))
                .build();
    }
}
