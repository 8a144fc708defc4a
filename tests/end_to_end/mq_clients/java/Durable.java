import com.ibm.mq.MQException;
import com.ibm.mq.MQGetMessageOptions;
import com.ibm.mq.MQMessage;
import com.ibm.mq.MQPutMessageOptions;
import com.ibm.mq.MQQueue;
import com.ibm.mq.MQQueueManager;
import com.ibm.mq.MQSubscription;
import com.ibm.mq.MQTopic;
import com.ibm.mq.constants.CMQC;
import com.ibm.mq.constants.MQConstants;
import com.ibm.msg.client.jms.JmsConnectionFactory;
import com.ibm.msg.client.jms.JmsFactoryFactory;
import com.ibm.msg.client.wmq.WMQConstants;
import java.util.Arrays;
import java.util.Hashtable;
import java.util.Set;
import java.util.TreeSet;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.Topic;

/**
 * Subscriptions that outlive their programs, with IBM MQ classes for JMS and for Java. Each scenario prints what a
 * program would see, a line a fact.
 *
 * <p>usage: Durable PORT CHANNEL USER PASSWORD SCENARIO...
 */
final class Durable {
    private static final long WAIT_MS = 20_000;

    private final String[] given;

    private Durable(String[] given) {
        this.given = given;
    }

    public static void main(String[] given) throws Exception {
        Durable programs = new Durable(given);
        for (String scenario : Arrays.copyOfRange(given, 4, given.length)) {
            try {
                programs.run(scenario);
            } catch (JMSException error) {
                tell(scenario, "refused", reason(error));
            } catch (MQException error) {
                tell(scenario, "refused", error.getReason());
            }
        }
        System.exit(0);
    }

    private void run(String scenario) throws Exception {
        switch (scenario) {
            case "durable" -> durable();
            case "begin" -> begin();
            case "back" -> back();
            case "shared" -> shared(false);
            case "sharedDurable" -> shared(true);
            case "listener" -> listener();
            case "base" -> base();
            case "own" -> own();
            case "request" -> request();
            default -> throw new IllegalArgumentException(scenario);
        }
    }

    private Connection connect(String client) throws JMSException {
        JmsConnectionFactory factory = JmsFactoryFactory.getInstance(WMQConstants.WMQ_PROVIDER).createConnectionFactory();
        factory.setStringProperty(WMQConstants.WMQ_HOST_NAME, "127.0.0.1");
        factory.setIntProperty(WMQConstants.WMQ_PORT, Integer.parseInt(given[0]));
        factory.setStringProperty(WMQConstants.WMQ_CHANNEL, given[1]);
        factory.setIntProperty(WMQConstants.WMQ_CONNECTION_MODE, WMQConstants.WMQ_CM_CLIENT);
        if (!client.isEmpty()) {
            factory.setStringProperty(WMQConstants.CLIENT_ID, client);
        }
        factory.setBooleanProperty(WMQConstants.USER_AUTHENTICATION_MQCSP, true);
        Connection connection = factory.createConnection(given[2], given[3]);
        connection.start();
        return connection;
    }

    private static void publish(Session session, String topic, String... texts) throws JMSException {
        MessageProducer producer = session.createProducer(session.createTopic("topic://" + topic));
        for (String text : texts) {
            producer.send(session.createTextMessage(text));
        }
        producer.close();
    }

    private static String all(MessageConsumer consumer) throws JMSException {
        StringBuilder seen = new StringBuilder();
        for (Message got = consumer.receive(1_000); got != null; got = consumer.receive(200)) {
            seen.append(got.getBody(String.class)).append(' ');
        }
        return seen.toString().strip();
    }

    /** A durable subscription is kept, in use, changed to another topic, and removed. */
    private void durable() throws Exception {
        try (Connection connection = connect("orders");
                Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            Topic topic = session.createTopic("topic://plant/durable/#");
            MessageConsumer first = session.createDurableSubscriber(topic, "readings");
            publish(session, "plant/durable/1", "a");
            tell("durable", "there", all(first));
            try {
                session.unsubscribe("readings");
                tell("durable", "unsubscribed");
            } catch (JMSException error) {
                tell("durable", "in use", reason(error));
            }
            first.close();
            publish(session, "plant/durable/2", "b", "c");
        }
        try (Connection connection = connect("orders");
                Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            MessageConsumer again = session.createDurableConsumer(session.createTopic("topic://plant/durable/#"), "readings");
            Message got = again.receive(WAIT_MS);
            tell("durable", "back", got.getBody(String.class), got.getJMSDestination(), all(again));
            again.close();
            publish(session, "plant/durable/3", "d");
            MessageConsumer other = session.createDurableConsumer(session.createTopic("topic://plant/other"), "readings");
            publish(session, "plant/other", "e");
            tell("durable", "other topic", all(other));
            other.close();
            session.unsubscribe("readings");
            try {
                session.unsubscribe("readings");
                tell("durable", "unsubscribed twice");
            } catch (JMSException error) {
                tell("durable", "gone", reason(error));
            }
        }
    }

    /** Leaves a durable subscription with two messages. */
    private void begin() throws Exception {
        try (Connection connection = connect("orders");
                Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            session.createDurableSubscriber(session.createTopic("topic://plant/begin"), "kept");
            publish(session, "plant/begin", "one", "two");
            tell("begin", "left");
        }
    }

    /** Comes back to it, reads in a unit of work that is rolled back once, and removes it. */
    private void back() throws Exception {
        try (Connection connection = connect("orders");
                Session session = connection.createSession(true, Session.SESSION_TRANSACTED)) {
            MessageConsumer consumer = session.createDurableSubscriber(session.createTopic("topic://plant/begin"), "kept");
            String before = all(consumer);
            session.rollback();
            tell("back", before.equals(all(consumer)), before);
            session.commit();
            consumer.close();
            session.unsubscribe("kept");
        }
    }

    /** Two programs share a subscription: each message reaches one of them. */
    private void shared(boolean isDurable) throws Exception {
        String scenario = isDurable ? "sharedDurable" : "shared";
        try (Connection first = connect("");
                Connection second = connect("");
                Session one = first.createSession(false, Session.AUTO_ACKNOWLEDGE);
                Session two = second.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            MessageConsumer left = join(one, isDurable);
            MessageConsumer right = join(two, isDurable);
            publish(one, "plant/shared", "1", "2", "3", "4");
            Set<String> seen = new TreeSet<>();
            for (MessageConsumer each : new MessageConsumer[] {left, right, left, right}) {
                seen.add(each.receive(WAIT_MS).getBody(String.class));
            }
            tell(scenario, String.join("", seen), left.receive(100) == null, right.receive(100) == null);
            left.close();
            publish(one, "plant/shared", "5");
            tell(scenario, "left alone", all(right));
            right.close();
            publish(one, "plant/shared", "6");
            MessageConsumer later = join(one, isDurable);
            tell(scenario, "later", all(later));
            later.close();
            if (isDurable) {
                one.unsubscribe("team");
            }
        }
    }

    private static MessageConsumer join(Session session, boolean isDurable) throws JMSException {
        Topic topic = session.createTopic("topic://plant/shared");
        return isDurable ? session.createSharedDurableConsumer(topic, "team") : session.createSharedConsumer(topic, "team");
    }

    /** A listener gets what came before it and what comes later. */
    private void listener() throws Exception {
        try (Connection connection = connect("orders");
                Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                Session sending = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            Topic topic = session.createTopic("topic://plant/listener");
            session.createDurableConsumer(topic, "listener").close();
            publish(sending, "plant/listener", "before");
            StringBuffer seen = new StringBuffer();
            MessageConsumer consumer = session.createDurableConsumer(topic, "listener");
            consumer.setMessageListener(message -> {
                try {
                    seen.append(message.getBody(String.class)).append(' ');
                } catch (JMSException error) {
                    seen.append(error);
                }
            });
            publish(sending, "plant/listener", "later");
            for (long end = System.currentTimeMillis() + WAIT_MS; seen.length() < 13 && System.currentTimeMillis() < end; ) {
                Thread.sleep(20);
            }
            tell("listener", seen.toString().strip());
            consumer.close();
            session.unsubscribe("listener");
        }
    }

    private MQQueueManager manager() throws MQException {
        Hashtable<String, Object> settings = new Hashtable<>();
        settings.put(MQConstants.HOST_NAME_PROPERTY, "127.0.0.1");
        settings.put(MQConstants.PORT_PROPERTY, Integer.valueOf(given[0]));
        settings.put(MQConstants.CHANNEL_PROPERTY, given[1]);
        settings.put(MQConstants.TRANSPORT_PROPERTY, MQConstants.TRANSPORT_MQSERIES_CLIENT);
        settings.put(MQConstants.USER_ID_PROPERTY, given[2]);
        settings.put(MQConstants.PASSWORD_PROPERTY, given[3]);
        settings.put(MQConstants.USE_MQCSP_AUTHENTICATION_PROPERTY, true);
        return new MQQueueManager("RFHB", settings);
    }

    private static void put(MQQueueManager manager, String topic, String text, int options) throws Exception {
        MQTopic place = manager.accessTopic(topic, "", CMQC.MQTOPIC_OPEN_AS_PUBLICATION, CMQC.MQOO_OUTPUT);
        MQMessage message = new MQMessage();
        message.persistence = CMQC.MQPER_PERSISTENT;
        message.writeString(text);
        MQPutMessageOptions put = new MQPutMessageOptions();
        put.options = CMQC.MQPMO_NO_SYNCPOINT | options;
        place.put(message, put);
        place.close();
    }

    private static String get(com.ibm.mq.MQDestination place) throws Exception {
        MQMessage message = new MQMessage();
        MQGetMessageOptions options = new MQGetMessageOptions();
        options.options = CMQC.MQGMO_NO_SYNCPOINT | CMQC.MQGMO_PROPERTIES_FORCE_MQRFH2;
        try {
            place.get(message, options);
        } catch (MQException error) {
            return String.valueOf(error.getReason());
        }
        byte[] data = new byte[message.getMessageLength()];
        message.readFully(data);
        String whole = new String(data, java.nio.charset.StandardCharsets.UTF_8);
        int top = whole.indexOf("<Top>");
        return whole.substring(whole.length() - 1) + (top < 0 ? "" : whole.substring(top + 5, whole.indexOf("</Top>")));
    }

    /** A durable subscription of the base classes, resumed and removed. */
    private void base() throws Exception {
        int create = CMQC.MQSO_CREATE | CMQC.MQSO_DURABLE | CMQC.MQSO_FAIL_IF_QUIESCING;
        int resume = CMQC.MQSO_RESUME | CMQC.MQSO_DURABLE | CMQC.MQSO_FAIL_IF_QUIESCING;
        MQQueueManager manager = manager();
        MQTopic topic = manager.accessTopic("plant/base", "", create, null, "base");
        put(manager, "plant/base", "a", 0);
        tell("base", get(topic), get(topic));
        topic.close();
        put(manager, "plant/base", "b", 0);
        for (int options : new int[] {create, CMQC.MQSO_RESUME | CMQC.MQSO_FAIL_IF_QUIESCING}) {
            try {
                manager.accessTopic("plant/base", "", options, null, "base");
                tell("base", "taken");
            } catch (MQException error) {
                tell("base", "refused", error.getReason());
            }
        }
        topic = manager.accessTopic("", "", resume, null, "base");
        tell("base", get(topic), get(topic));
        topic.getSubscriptionReference().setCloseOptions(CMQC.MQCO_REMOVE_SUB);
        topic.close();
        try {
            manager.accessTopic("", "", resume, null, "base");
            tell("base", "still there");
        } catch (MQException error) {
            tell("base", "removed", error.getReason());
        }
        manager.disconnect();
    }

    /** Publications come to the program's own queue. */
    private void own() throws Exception {
        MQQueueManager manager = manager();
        MQQueue queue = manager.accessQueue("ORDERS", CMQC.MQOO_INPUT_SHARED);
        MQTopic topic = manager.accessTopic(queue, "plant/own", "", CMQC.MQSO_CREATE, null, "own", null);
        put(manager, "plant/own", "a", 0);
        tell("own", get(queue), get(queue));
        topic.close();
        manager.disconnect();
    }

    /** Retained publications come when they are asked for. */
    private void request() throws Exception {
        MQQueueManager manager = manager();
        int options = CMQC.MQSO_CREATE | CMQC.MQSO_PUBLICATIONS_ON_REQUEST | CMQC.MQSO_MANAGED;
        MQTopic topic = manager.accessTopic("plant/request", "", options, null, null);
        MQSubscription subscription = topic.getSubscriptionReference();
        try {
            subscription.requestPublicationUpdate(CMQC.MQSRO_NONE);
            tell("request", "sent");
        } catch (MQException error) {
            tell("request", "nothing", error.getReason());
        }
        put(manager, "plant/request", "a", CMQC.MQPMO_RETAIN);
        tell("request", get(topic));
        tell("request", subscription.requestPublicationUpdate(CMQC.MQSRO_NONE), get(topic), get(topic));
        topic.close();
        manager.disconnect();
    }

    private static Object reason(JMSException error) {
        return error.getLinkedException() instanceof MQException cause ? cause.getReason() : error.getErrorCode();
    }

    private static void tell(String scenario, Object... facts) {
        System.out.println(scenario + ": " + String.join(" ", Arrays.stream(facts).map(String::valueOf).toList()));
    }
}
