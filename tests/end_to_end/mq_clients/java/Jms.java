import com.ibm.mq.constants.CMQC;
import com.ibm.mq.headers.MQRFH2;
import com.ibm.msg.client.jms.JmsConnectionFactory;
import com.ibm.msg.client.jms.JmsDestination;
import com.ibm.msg.client.jms.JmsFactoryFactory;
import com.ibm.msg.client.wmq.WMQConstants;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Enumeration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.ObjectMessage;
import javax.jms.Queue;
import javax.jms.QueueBrowser;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TemporaryQueue;
import javax.jms.TextMessage;

/**
 * Programs with IBM MQ classes for JMS, unmodified. Each scenario prints what a program would see, a line a fact.
 *
 * <p>usage: Jms PORT CHANNEL USER PASSWORD SCENARIO...; a USER "-" sends no password. The system property suite is the
 * cipher suite; without it the program uses no TLS.
 */
final class Jms {
    private static final long WAIT_MS = 20_000;

    private final JmsConnectionFactory factory;
    private final String user;
    private final String password;

    private Jms(String[] given) throws JMSException {
        factory = JmsFactoryFactory.getInstance(WMQConstants.WMQ_PROVIDER).createConnectionFactory();
        factory.setStringProperty(WMQConstants.WMQ_HOST_NAME, "127.0.0.1");
        factory.setIntProperty(WMQConstants.WMQ_PORT, Integer.parseInt(given[0]));
        factory.setStringProperty(WMQConstants.WMQ_CHANNEL, given[1]);
        factory.setIntProperty(WMQConstants.WMQ_CONNECTION_MODE, WMQConstants.WMQ_CM_CLIENT);
        factory.setStringProperty(WMQConstants.WMQ_APPLICATIONNAME, "orders");
        factory.setStringProperty(WMQConstants.CLIENT_ID, "orders");
        factory.setBooleanProperty(WMQConstants.USER_AUTHENTICATION_MQCSP, true);
        if (System.getProperty("suite") != null) {
            factory.setStringProperty(WMQConstants.WMQ_SSL_CIPHER_SUITE, System.getProperty("suite"));
        }
        user = given[2];
        password = given[3];
    }

    public static void main(String[] given) throws Exception {
        Jms programs = new Jms(given);
        for (String scenario : Arrays.copyOfRange(given, 4, given.length)) {
            try (Connection connection = programs.connect()) {
                connection.start();
                programs.run(scenario, connection);
            } catch (JMSException error) {
                tell(scenario, "refused", error.getErrorCode(), error.getLinkedException());
            }
        }
        System.exit(0);
    }

    private Connection connect() throws JMSException {
        return user.equals("-") ? factory.createConnection() : factory.createConnection(user, password);
    }

    private void run(String scenario, Connection connection) throws Exception {
        switch (scenario) {
            case "kinds" -> kinds(connection);
            case "transacted" -> transacted(connection);
            case "browser" -> browser(connection);
            case "reply" -> reply(connection);
            case "listener" -> listener(connection);
            case "priorities" -> priorities(connection);
            case "topics" -> topics(connection);
            case "sensor" -> sensor(connection);
            case "forbidden" -> forbidden(connection);
            case "ahead" -> ahead(connection);
            case "reading" -> reading(connection);
            case "header" -> header(connection);
            case "absent" -> absent(connection);
            case "selectors" -> selectors(connection);
            case "selected" -> selected(connection);
            case "reports" -> reports(connection);
            case "local" -> local(connection);
            default -> throw new IllegalArgumentException(scenario);
        }
    }

    private static void kinds(Connection connection) throws Exception {
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            Queue queue = session.createQueue("queue:///ORDERS");
            MessageProducer producer = session.createProducer(queue);
            MessageConsumer consumer = session.createConsumer(queue);
            TextMessage text = session.createTextMessage("Größe 日本 \uD83D\uDE00");
            text.setStringProperty("colour", "blau");
            text.setIntProperty("count", 7);
            text.setBooleanProperty("whole", true);
            text.setJMSCorrelationID("order-7");
            producer.send(text);
            BytesMessage bytes = session.createBytesMessage();
            bytes.writeBytes(new byte[] {0, 1, (byte) 0xff});
            producer.send(bytes);
            MapMessage map = session.createMapMessage();
            map.setInt("level", 3);
            map.setString("name", "pump");
            producer.send(map);
            StreamMessage stream = session.createStreamMessage();
            stream.writeDouble(1.5);
            stream.writeString("x");
            producer.send(stream);
            ObjectMessage object = session.createObjectMessage("serialized");
            producer.send(object);
            producer.send(session.createMessage());

            TextMessage gotText = (TextMessage) consumer.receive(WAIT_MS);
            tell("kinds", "text", gotText.getText().equals(text.getText()), gotText.getStringProperty("colour"),
                    gotText.getIntProperty("count"), gotText.getBooleanProperty("whole"), gotText.getJMSCorrelationID(),
                    gotText.getJMSMessageID().equals(text.getJMSMessageID()), gotText.getStringProperty("JMSXUserID").strip());
            BytesMessage gotBytes = (BytesMessage) consumer.receive(WAIT_MS);
            tell("kinds", "bytes", gotBytes.getBodyLength(), gotBytes.readByte(), gotBytes.readByte(), gotBytes.readByte());
            MapMessage gotMap = (MapMessage) consumer.receive(WAIT_MS);
            tell("kinds", "map", gotMap.getInt("level"), gotMap.getString("name"));
            StreamMessage gotStream = (StreamMessage) consumer.receive(WAIT_MS);
            tell("kinds", "stream", gotStream.readDouble(), gotStream.readString());
            tell("kinds", "object", ((ObjectMessage) consumer.receive(WAIT_MS)).getObject());
            tell("kinds", "none", consumer.receive(WAIT_MS) != null, consumer.receive(50) == null);
        }
    }

    private static void transacted(Connection connection) throws Exception {
        try (Session session = connection.createSession(true, Session.SESSION_TRANSACTED)) {
            Queue queue = session.createQueue("queue:///ORDERS");
            MessageProducer producer = session.createProducer(queue);
            MessageConsumer consumer = session.createConsumer(queue);
            producer.send(session.createTextMessage("lost"));
            session.rollback();
            tell("transacted", "after rollback", consumer.receiveNoWait() == null);
            producer.send(session.createTextMessage("kept"));
            session.commit();
            Message first = consumer.receive(WAIT_MS);
            session.rollback();
            Message second = consumer.receive(WAIT_MS);
            session.commit();
            tell("transacted", ((TextMessage) second).getText(), first.getJMSRedelivered(), second.getJMSRedelivered(),
                    second.getIntProperty("JMSXDeliveryCount"));
            tell("transacted", "after commit", consumer.receiveNoWait() == null);
        }
    }

    private static void browser(Connection connection) throws Exception {
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            Queue queue = session.createQueue("queue:///ORDERS");
            MessageProducer producer = session.createProducer(queue);
            for (String text : new String[] {"a", "b", "c"}) {
                producer.send(session.createTextMessage(text));
            }
            StringBuilder seen = new StringBuilder();
            QueueBrowser browser = session.createBrowser(queue);
            for (Enumeration<?> each = browser.getEnumeration(); each.hasMoreElements(); ) {
                seen.append(((TextMessage) each.nextElement()).getText());
            }
            browser.close();
            MessageConsumer consumer = session.createConsumer(queue);
            StringBuilder taken = new StringBuilder();
            for (Message got = consumer.receive(WAIT_MS); got != null; got = consumer.receiveNoWait()) {
                taken.append(((TextMessage) got).getText());
            }
            tell("browser", seen, taken);
        }
    }

    private static void reply(Connection connection) throws Exception {
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            TemporaryQueue replies = session.createTemporaryQueue();
            TextMessage request = session.createTextMessage("question");
            request.setJMSReplyTo(replies);
            session.createProducer(session.createQueue("queue:///ORDERS")).send(request);
            Message asked = session.createConsumer(session.createQueue("queue:///ORDERS")).receive(WAIT_MS);
            MessageProducer producer = session.createProducer(asked.getJMSReplyTo());
            producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
            TextMessage answer = session.createTextMessage("answer");
            answer.setJMSCorrelationID(asked.getJMSMessageID());
            producer.send(answer);
            MessageConsumer consumer = session.createConsumer(replies);
            TextMessage got = (TextMessage) consumer.receive(WAIT_MS);
            tell("reply", got.getText(), got.getJMSCorrelationID().equals(request.getJMSMessageID()));
            consumer.close();
            producer.close();
            replies.delete();
        }
    }

    private static void listener(Connection connection) throws Exception {
        int count = 20;
        CountDownLatch arrived = new CountDownLatch(count);
        StringBuffer seen = new StringBuffer();
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                Session sending = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            MessageConsumer consumer = session.createConsumer(session.createQueue("queue:///ORDERS"));
            consumer.setMessageListener(message -> {
                try {
                    BytesMessage got = (BytesMessage) message;
                    seen.append(got.getBodyLength()).append(' ');
                } catch (JMSException error) {
                    seen.append(error);
                }
                arrived.countDown();
            });
            MessageProducer producer = sending.createProducer(sending.createQueue("queue:///ORDERS"));
            for (int number = 0; number < count; number++) {
                BytesMessage message = sending.createBytesMessage();
                message.writeBytes(new byte[number * 10_000]);
                producer.send(message);
            }
            tell("listener", arrived.await(WAIT_MS, TimeUnit.MILLISECONDS), seen.toString().strip());
            consumer.close();
        }
    }

    private static void priorities(Connection connection) throws Exception {
        try (Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE)) {
            Queue queue = session.createQueue("queue:///ORDERS");
            MessageProducer producer = session.createProducer(queue);
            for (int priority : new int[] {1, 9, 4}) {
                producer.send(session.createTextMessage("p" + priority), DeliveryMode.PERSISTENT, priority, 0);
            }
            producer.send(session.createTextMessage("short"), DeliveryMode.NON_PERSISTENT, 9, 100);
            Thread.sleep(300);
            MessageConsumer consumer = session.createConsumer(queue);
            StringBuilder seen = new StringBuilder();
            for (Message got = consumer.receive(WAIT_MS); got != null; got = consumer.receive(100)) {
                seen.append(((TextMessage) got).getText()).append(got.getJMSPriority()).append(' ');
                got.acknowledge();
            }
            tell("priorities", seen.toString().strip());
        }
    }

    private static void topics(Connection connection) throws Exception {
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            MessageConsumer all = session.createConsumer(session.createTopic("topic://plant/#"));
            MessageConsumer one = session.createConsumer(session.createTopic("topic://plant/+/bar"));
            MessageProducer producer = session.createProducer(session.createTopic("topic://plant/pump 7/bar"));
            TextMessage text = session.createTextMessage("4.2 Größe");
            text.setStringProperty("unit", "bar");
            producer.send(text);
            for (MessageConsumer consumer : new MessageConsumer[] {all, one}) {
                TextMessage got = (TextMessage) consumer.receive(WAIT_MS);
                tell("topics", got.getText(), got.getJMSDestination(), got.getStringProperty("unit"),
                        got.getJMSMessageID() != null);
            }
            all.close();
            producer.send(text);
            tell("topics", one.receive(WAIT_MS) != null, one.receive(100) == null);
        }
    }

    /** Waits for two readings of a sensor, and answers with one of its own. */
    private static void sensor(Connection connection) throws Exception {
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            MessageConsumer consumer = session.createConsumer(session.createTopic("topic://plant/#"));
            System.out.println("sensor: ready");
            BytesMessage bytes = (BytesMessage) consumer.receive(WAIT_MS);
            byte[] body = new byte[(int) bytes.getBodyLength()];
            bytes.readBytes(body);
            tell("sensor", new String(body), bytes.getJMSDestination(), bytes.getJMSDeliveryMode());
            TextMessage text = (TextMessage) consumer.receive(WAIT_MS);
            tell("sensor", text.getText(), text.getJMSDestination(), text.getStringProperty("rfhbUserProps"));
            MessageProducer producer = session.createProducer(session.createTopic("topic://panel/command"));
            producer.send(session.createTextMessage("open"));
        }
    }

    private static void forbidden(Connection connection) throws Exception {
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            for (String topic : new String[] {"topic://secret/#", "topic://#"}) {
                try {
                    session.createConsumer(session.createTopic(topic));
                    tell("forbidden", topic, "subscribed");
                } catch (JMSException error) {
                    tell("forbidden", topic, reason(error));
                }
            }
            try {
                session.createProducer(session.createTopic("topic://secret/x")).send(session.createMessage());
                tell("forbidden", "published");
            } catch (JMSException error) {
                tell("forbidden", "publish", reason(error));
            }
        }
    }

    private static Object reason(JMSException error) {
        return error.getLinkedException() instanceof com.ibm.mq.MQException cause
                ? cause.getReason()
                : error.getErrorCode();
    }

    private static void ahead(Connection connection) throws Exception {
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            Queue queue = session.createQueue("queue:///ORDERS?readAheadAllowed=1");
            MessageProducer producer = session.createProducer(queue);
            producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
            producer.send(session.createTextMessage("a"));
            MessageConsumer consumer = session.createConsumer(queue);
            tell("ahead", ((TextMessage) consumer.receive(WAIT_MS)).getText(), consumer.receive(50) == null);
        }
    }

    /** A publication of an MQTT client that the broker put on a queue, as JMS reads it. */
    private static void reading(Connection connection) throws Exception {
        try (Session session = connection.createSession(true, Session.SESSION_TRANSACTED)) {
            MessageConsumer consumer = session.createConsumer(session.createQueue("queue:///ORDERS"));
            BytesMessage got = (BytesMessage) consumer.receive(WAIT_MS);
            tell("reading", new String(bytes(got), StandardCharsets.UTF_8), got.getJMSDestination(),
                    got.getJMSDeliveryMode() == DeliveryMode.PERSISTENT, got.getStringProperty("rfhbContentType"));
            session.rollback();
        }
    }

    /** The same with its header, which tells the topic. */
    private static void header(Connection connection) throws Exception {
        try (Session session = connection.createSession(true, Session.SESSION_TRANSACTED)) {
            Queue queue = session.createQueue("queue:///ORDERS");
            ((JmsDestination) queue).setIntProperty(WMQConstants.WMQ_MESSAGE_BODY, WMQConstants.WMQ_MESSAGE_BODY_MQ);
            BytesMessage got = (BytesMessage) session.createConsumer(queue).receive(WAIT_MS);
            DataInputStream body = new DataInputStream(new ByteArrayInputStream(bytes(got)));
            MQRFH2 header = new MQRFH2(body, got.getIntProperty(WMQConstants.JMS_IBM_ENCODING), 1208);
            tell("header", header.getStringFieldValue("psc", "Topic"), new String(body.readAllBytes(), StandardCharsets.UTF_8));
            session.commit();
        }
    }

    /** What each selector takes of twenty messages, by receiving, browsing and listening, and of publications. */
    private static void selectors(Connection connection) throws Exception {
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                Session listening = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            Queue queue = session.createQueue("queue:///ORDERS");
            MessageProducer producer = session.createProducer(queue);
            MessageConsumer blue = session.createConsumer(session.createTopic("topic://plant/#"), "colour = 'blue' AND n > 5");
            MessageProducer publisher = session.createProducer(session.createTopic("topic://plant/pump"));
            String identifier = null;
            for (int number = 0; number < 20; number++) {
                TextMessage text = session.createTextMessage("" + number);
                text.setStringProperty("colour", number % 2 == 0 ? "blue" : "dark_red");
                text.setIntProperty("n", number);
                text.setDoubleProperty("weight", number / 4.0);
                text.setBooleanProperty("last", number == 19);
                text.setJMSType("reading");
                text.setJMSCorrelationID("order-" + number);
                producer.send(text, number % 3 == 0 ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT, number % 10, 0);
                identifier = number == 7 ? text.getJMSMessageID() : identifier;
                publisher.send(text);
            }
            for (String selector : new String[] {
                "n BETWEEN 3 AND 5", "colour = 'blue' AND weight >= 4.0", "last", "JMSPriority = 9 AND NOT last",
                "JMSDeliveryMode = 'PERSISTENT' AND n < 7", "JMSCorrelationID = 'order-4'", "JMSType = 'reading' AND n = 2 * 3",
                "colour LIKE 'dark!_%' ESCAPE '!' AND n IN (1, 3)", "JMSMessageID = '" + identifier + "' OR n = 8", "nothing IS NULL AND n = 0",
                "JMSTimestamp > 1700000000000 AND n = 10", "colour <> 'blue' AND n > 16", "nothing = 1"}) {
                StringBuilder seen = new StringBuilder();
                QueueBrowser browser = session.createBrowser(queue, selector);
                for (Enumeration<?> each = browser.getEnumeration(); each.hasMoreElements(); ) {
                    seen.append(((TextMessage) each.nextElement()).getText()).append(' ');
                }
                browser.close();
                tell("selectors", selector.contains("ID:") ? "JMSMessageID" : selector, "->", seen.toString().strip());
            }
            MessageConsumer five = session.createConsumer(queue, "n = 5");
            tell("selectors", "receive", ((TextMessage) five.receive(WAIT_MS)).getText(), five.receive(50) == null);
            five.close();
            CountDownLatch arrived = new CountDownLatch(4);
            StringBuffer heard = new StringBuffer();
            MessageConsumer listener = listening.createConsumer(queue, "colour = 'blue' AND n > 13 OR n = 100");
            listener.setMessageListener(message -> {
                try {
                    heard.append(((TextMessage) message).getText()).append(' ');
                } catch (JMSException error) {
                    heard.append(error);
                }
                arrived.countDown();
            });
            Thread.sleep(200);
            TextMessage late = session.createTextMessage("late");
            late.setIntProperty("n", 100);
            producer.send(late);
            tell("selectors", "listen", arrived.await(WAIT_MS, TimeUnit.MILLISECONDS), heard.toString().strip());
            listener.close();
            StringBuilder published = new StringBuilder();
            for (Message got = blue.receive(WAIT_MS); got != null; got = blue.receive(50)) {
                published.append(((TextMessage) got).getText()).append(' ');
            }
            tell("selectors", "topic", published.toString().strip());
            MessageConsumer rest = session.createConsumer(queue);
            int left = 0;
            while (rest.receive(50) != null) {
                left++;
            }
            tell("selectors", "left", left);
        }
    }

    /** A subscriber that leaves out what its own connection publishes, in whatever session. */
    private void local(Connection connection) throws Exception {
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                Session own = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                Connection other = another();
                Session of = other.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            MessageConsumer consumer = session.createConsumer(session.createTopic("topic://plant/#"), null, true);
            for (Session each : new Session[] {session, own, of}) {
                String who = each == of ? "other" : "own";
                each.createProducer(each.createTopic("topic://plant/a")).send(each.createTextMessage(who));
            }
            StringBuilder seen = new StringBuilder();
            for (Message got = consumer.receive(WAIT_MS); got != null; got = consumer.receive(200)) {
                seen.append(((TextMessage) got).getText()).append(' ');
            }
            tell("local", seen.toString().strip());
        }
    }

    private Connection another() throws JMSException {
        factory.setStringProperty(WMQConstants.CLIENT_ID, "another");
        return connect();
    }

    /** Confirmations of arrival without data, with the first of them and with all. */
    private static void reports(Connection connection) throws Exception {
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            TemporaryQueue replies = session.createTemporaryQueue();
            Queue queue = session.createQueue("queue:///ORDERS");
            MessageProducer producer = session.createProducer(queue);
            producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
            MessageConsumer consumer = session.createConsumer(replies);
            for (int option : new int[] {CMQC.MQRO_COA, CMQC.MQRO_COA_WITH_DATA, CMQC.MQRO_COA_WITH_FULL_DATA}) {
                TextMessage asked = session.createTextMessage("x".repeat(500));
                asked.setStringProperty("colour", "y".repeat(200));
                asked.setJMSReplyTo(replies);
                asked.setIntProperty(WMQConstants.JMS_IBM_REPORT_COA, option);
                producer.send(asked);
                Message report = consumer.receive(WAIT_MS);
                tell("reports", report instanceof TextMessage text ? text.getText().length() : 0, report.propertyExists("colour"),
                        report.getIntProperty(WMQConstants.JMS_IBM_FEEDBACK),
                        report.getJMSCorrelationID().equals(asked.getJMSMessageID()));
            }
            MessageConsumer rest = session.createConsumer(queue);
            while (rest.receive(50) != null) {
                continue;
            }
        }
    }

    /** Waits for one message among very many that others have put and that it does not select. */
    private static void selected(Connection connection) throws Exception {
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            MessageConsumer consumer = session.createConsumer(session.createQueue("queue:///ORDERS"), "JMSPriority = 9");
            System.out.println("selected: ready");
            tell("selected", consumer.receive(5 * WAIT_MS) != null);
        }
    }

    private interface Attempt {
        void make() throws JMSException;
    }

    /** The reason codes of what is not there. */
    private static void absent(Connection connection) throws Exception {
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
            Queue queue = session.createQueue("queue:///ORDERS");
            refused("selector", () -> session.createConsumer(queue, "colour ="));
            refused("function", () -> session.createConsumer(queue, "upper(colour) = 'BLUE'"));
            refused("topic", () -> session.createConsumer(session.createTopic("topic://plant/#"), "colour ="));
            refused("ahead", () -> session.createConsumer(session.createTopic("topic://plant/#?readAheadAllowed=1")));
            refused("group", () -> {
                TextMessage text = session.createTextMessage();
                text.setStringProperty("JMSXGroupID", "group");
                text.setIntProperty("JMSXGroupSeq", 1);
                session.createProducer(queue).send(text);
            });
            refused("delay", () -> {
                MessageProducer producer = session.createProducer(queue);
                producer.setDeliveryDelay(60_000);
                producer.send(session.createTextMessage());
            });
            refused("asynchronous", () -> {
                MessageProducer producer = session.createProducer(session.createQueue("queue:///ORDERS?putAsyncAllowed=1"));
                producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
                producer.send(session.createTextMessage());
            });
        }
    }

    private static void refused(String what, Attempt attempt) {
        try {
            attempt.make();
            tell("absent", what, "done");
        } catch (JMSException error) {
            tell("absent", what, reason(error));
        }
    }

    private static byte[] bytes(BytesMessage message) throws JMSException {
        byte[] read = new byte[(int) message.getBodyLength()];
        message.readBytes(read);
        return read;
    }

    private static void tell(String scenario, Object... facts) {
        System.out.println(scenario + ": " + String.join(" ", Arrays.stream(facts).map(String::valueOf).toList()));
    }
}
