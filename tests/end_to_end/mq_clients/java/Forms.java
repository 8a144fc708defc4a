import com.ibm.mq.MQException;
import com.ibm.msg.client.jms.JmsConnectionFactory;
import com.ibm.msg.client.jms.JmsFactoryFactory;
import com.ibm.msg.client.wmq.WMQConstants;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Enumeration;
import java.util.HexFormat;
import java.util.List;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.ObjectMessage;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TextMessage;

/**
 * What sensors publish, as messages of JMS, and messages of JMS for MQTT clients.
 *
 * <p>usage: Forms PORT CHANNEL USER PASSWORD PROVIDER receive COUNT DESTINATION [SELECTOR]; or ... PROVIDER send TOPIC.
 * PROVIDER is new, or V1 or V2: version 6 of the provider with MQRFH or MQRFH2. A USER "-" sends no password.
 */
final class Forms {
    private static final long WAIT_MS = 20_000;

    private Forms() {}

    public static void main(String[] given) throws Exception {
        try (Connection connection = connect(given)) {
            connection.start();
            try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
                if (given[5].equals("send")) {
                    send(session, given[6]);
                } else {
                    receive(session, Integer.parseInt(given[6]), given[7], given.length > 8 ? given[8] : null);
                }
            }
        } catch (JMSException error) {
            Object reason = error.getLinkedException() instanceof MQException cause ? cause.getReason() : error;
            System.out.println("refused " + reason);
        }
        System.exit(0);
    }

    private static Connection connect(String[] given) throws JMSException {
        JmsConnectionFactory factory = JmsFactoryFactory.getInstance(WMQConstants.WMQ_PROVIDER).createConnectionFactory();
        factory.setStringProperty(WMQConstants.WMQ_HOST_NAME, "127.0.0.1");
        factory.setIntProperty(WMQConstants.WMQ_PORT, Integer.parseInt(given[0]));
        factory.setStringProperty(WMQConstants.WMQ_CHANNEL, given[1]);
        factory.setIntProperty(WMQConstants.WMQ_CONNECTION_MODE, WMQConstants.WMQ_CM_CLIENT);
        factory.setStringProperty(WMQConstants.CLIENT_ID, "forms");
        if (given[4].equals("new")) {
            factory.setBooleanProperty(WMQConstants.USER_AUTHENTICATION_MQCSP, true);
        } else {
            boolean isFirst = given[4].equals("V1");
            factory.setStringProperty(WMQConstants.WMQ_QUEUE_MANAGER, "RFHB");
            factory.setStringProperty(WMQConstants.WMQ_PROVIDER_VERSION, "6");
            factory.setIntProperty(
                    WMQConstants.WMQ_BROKER_VERSION, isFirst ? WMQConstants.WMQ_BROKER_V1 : WMQConstants.WMQ_BROKER_V2);
        }
        return given[2].equals("-") ? factory.createConnection() : factory.createConnection(given[2], given[3]);
    }

    private static void receive(Session session, int count, String name, String selector) throws Exception {
        Destination destination = name.startsWith("topic:") ? session.createTopic(name) : session.createQueue(name);
        MessageConsumer consumer = session.createConsumer(destination, selector);
        System.out.println("ready");
        for (int number = 0; number < count; number++) {
            Message got = consumer.receive(WAIT_MS);
            System.out.println(got == null ? "nothing" : told(got));
        }
    }

    private static String told(Message got) throws JMSException {
        List<String> facts = new ArrayList<>();
        if (got instanceof TextMessage text) {
            facts.add("text " + text.getText());
        } else if (got instanceof BytesMessage bytes) {
            byte[] body = new byte[(int) bytes.getBodyLength()];
            bytes.readBytes(body);
            facts.add("bytes " + HexFormat.of().formatHex(body));
        } else {
            facts.add(got.getClass().getSimpleName());
        }
        try {
            Destination destination = got.getJMSDestination();
            facts.add(destination == null ? "null" : destination.toString());
        } catch (JMSException error) {
            facts.add(error.getErrorCode());
        }
        facts.add("mode " + got.getJMSDeliveryMode());
        facts.add("age " + (System.currentTimeMillis() - got.getJMSTimestamp() < 60_000 ? "seconds" : got.getJMSTimestamp()));
        for (Enumeration<?> names = got.getPropertyNames(); names.hasMoreElements(); ) {
            String name = (String) names.nextElement();
            if (!name.startsWith("JMS") && !name.matches("rfhb(Qos|Seq|Client|User)")) {
                facts.add(name + "=" + got.getStringProperty(name));
            }
        }
        Collections.sort(facts.subList(4, facts.size()));
        return String.join("; ", facts);
    }

    /** A message of each kind, with two properties. */
    private static void send(Session session, String topic) throws Exception {
        TextMessage text = session.createTextMessage("Größe \uD83D\uDE00");
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeBytes(new byte[] {0, 1, (byte) 0xff});
        MapMessage map = session.createMapMessage();
        map.setString("name", "Größe <&> \uD83D\uDE00\t");
        map.setInt("level", -3);
        map.setLong("large", Long.MAX_VALUE);
        map.setDouble("bar", 4.2);
        map.setFloat("few", 1.5f);
        map.setDouble("none", Double.NaN);
        map.setBoolean("open", true);
        map.setByte("small", (byte) 7);
        map.setShort("short", (short) 300);
        map.setChar("letter", 'ß');
        map.setBytes("raw", new byte[] {0, (byte) 0xff});
        map.setString("nothing", null);
        map.setString("a b$", "x");
        StreamMessage stream = session.createStreamMessage();
        stream.writeDouble(1.5);
        stream.writeString("x");
        ObjectMessage object = session.createObjectMessage("serialized");
        MessageProducer producer = session.createProducer(session.createTopic(topic));
        for (Message each : Arrays.asList(text, bytes, map, stream, object, session.createMapMessage(), session.createMessage())) {
            each.setStringProperty("unit", "bar");
            each.setIntProperty("site", 7);
            producer.send(each);
        }
        System.out.println("sent");
    }
}
