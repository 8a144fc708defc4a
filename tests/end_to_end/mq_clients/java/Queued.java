import com.ibm.mq.MQException;
import com.ibm.msg.client.jms.JmsConnectionFactory;
import com.ibm.msg.client.jms.JmsFactoryFactory;
import com.ibm.msg.client.wmq.WMQConstants;
import java.util.Arrays;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.jms.Topic;

/**
 * Queued publish/subscribe as IBM MQ classes for JMS do it with provider version 6. Each scenario prints what a program
 * would see, a line a fact.
 *
 * <p>usage: Queued PORT CHANNEL BROKERVERSION SCENARIO...; the broker version is V1 (MQRFH) or V2 (MQRFH2).
 */
final class Queued {
    private static final long WAIT_MS = 20_000;

    private final String[] given;
    private final String all;

    private Queued(String[] given) {
        this.given = given;
        all = given[2].equals("V1") ? "*" : "#";
    }

    public static void main(String[] given) throws Exception {
        Queued programs = new Queued(given);
        for (String scenario : Arrays.copyOfRange(given, 3, given.length)) {
            try (Connection connection = programs.connect()) {
                connection.start();
                programs.run(scenario, connection);
            } catch (JMSException error) {
                tell(scenario, "refused", reason(error));
            }
        }
        System.exit(0);
    }

    private Connection connect() throws JMSException {
        JmsConnectionFactory factory = JmsFactoryFactory.getInstance(WMQConstants.WMQ_PROVIDER).createConnectionFactory();
        factory.setStringProperty(WMQConstants.WMQ_HOST_NAME, "127.0.0.1");
        factory.setIntProperty(WMQConstants.WMQ_PORT, Integer.parseInt(given[0]));
        factory.setStringProperty(WMQConstants.WMQ_CHANNEL, given[1]);
        factory.setIntProperty(WMQConstants.WMQ_CONNECTION_MODE, WMQConstants.WMQ_CM_CLIENT);
        factory.setStringProperty(WMQConstants.WMQ_QUEUE_MANAGER, "RFHB"); // durable subscriptions need its name
        factory.setStringProperty(WMQConstants.WMQ_PROVIDER_VERSION, "6");
        factory.setIntProperty(
                WMQConstants.WMQ_BROKER_VERSION, given[2].equals("V1") ? WMQConstants.WMQ_BROKER_V1 : WMQConstants.WMQ_BROKER_V2);
        factory.setStringProperty(WMQConstants.CLIENT_ID, "queued");
        return factory.createConnection();
    }

    private void run(String scenario, Connection connection) throws Exception {
        switch (scenario) {
            case "topics" -> topics(connection);
            case "durable" -> durable(connection);
            case "begin" -> begin(connection);
            case "back" -> back(connection);
            case "hang" -> hang(connection);
            case "forbidden" -> forbidden(connection);
            default -> throw new IllegalArgumentException(scenario);
        }
    }

    private static void publish(Session session, String topic, String text) throws JMSException {
        MessageProducer producer = session.createProducer(session.createTopic("topic://" + topic));
        TextMessage message = session.createTextMessage(text);
        message.setStringProperty("unit", "bar");
        producer.send(message);
        producer.close();
    }

    private static String taken(MessageConsumer consumer) throws JMSException {
        StringBuilder seen = new StringBuilder();
        for (Message got = consumer.receive(1_000); got != null; got = consumer.receive(200)) {
            seen.append(((TextMessage) got).getText()).append(' ');
        }
        return seen.toString().strip();
    }

    private void topics(Connection connection) throws Exception {
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            MessageConsumer consumer = session.createConsumer(session.createTopic("topic://plant/queued/" + all));
            publish(session, "plant/queued/1", "4.2");
            TextMessage got = (TextMessage) consumer.receive(WAIT_MS);
            tell("topics", got.getText(), got.getJMSDestination().toString().split("\\?")[0], got.getStringProperty("unit"));
            consumer.close();
            publish(session, "plant/queued/1", "lost");
            consumer = session.createConsumer(session.createTopic("topic://plant/queued/1"));
            tell("topics", "later", taken(consumer));
        }
    }

    private void durable(Connection connection) throws Exception {
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            Topic topic = session.createTopic("topic://plant/queued/" + all);
            MessageConsumer consumer = session.createDurableSubscriber(topic, "kept");
            publish(session, "plant/queued/1", "a");
            tell("durable", "there", taken(consumer));
            consumer.close();
            publish(session, "plant/queued/1", "b");
            consumer = session.createDurableSubscriber(topic, "kept");
            tell("durable", "back", taken(consumer));
            consumer.close();
            publish(session, "plant/queued/1", "c");
            session.unsubscribe("kept");
            consumer = session.createDurableSubscriber(topic, "kept");
            tell("durable", "new", taken(consumer));
            consumer.close();
            session.unsubscribe("kept");
            try {
                session.unsubscribe("kept");
                tell("durable", "unsubscribed twice");
            } catch (JMSException error) {
                tell("durable", "gone", error.getClass().getSimpleName());
            }
        }
    }

    /** Leaves a durable subscription, and one message. */
    private void begin(Connection connection) throws Exception {
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            session.createDurableSubscriber(session.createTopic("topic://plant/queued/1"), "left").close();
            publish(session, "plant/queued/1", "one");
            tell("begin", "left");
        }
    }

    private void back(Connection connection) throws Exception {
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            MessageConsumer consumer = session.createDurableSubscriber(session.createTopic("topic://plant/queued/1"), "left");
            tell("back", taken(consumer));
            consumer.close();
            session.unsubscribe("left");
        }
    }

    /** Waits for its end with a subscription that is not durable, and one that is. */
    private void hang(Connection connection) throws Exception {
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            session.createConsumer(session.createTopic("topic://plant/queued/hang"));
            session.createDurableSubscriber(session.createTopic("topic://plant/queued/hang"), "hanging");
            tell("hang", "there");
            Thread.sleep(WAIT_MS * 6);
        }
    }

    private void forbidden(Connection connection) throws Exception {
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            try {
                session.createConsumer(session.createTopic("topic://secret/" + all));
                tell("forbidden", "subscribed");
            } catch (JMSException error) {
                tell("forbidden", "subscribe", reason(error));
            }
            try {
                publish(session, "secret/1", "x");
                tell("forbidden", "published");
            } catch (JMSException error) {
                tell("forbidden", "publish", reason(error));
            }
        }
    }

    private static Object reason(JMSException error) {
        return error.getLinkedException() instanceof MQException cause
                ? cause.getReason()
                : error.getErrorCode() + " " + error.getMessage().lines().findFirst().orElse("");
    }

    private static void tell(String scenario, Object... facts) {
        System.out.println(scenario + ": " + String.join(" ", Arrays.stream(facts).map(String::valueOf).toList()));
    }
}
