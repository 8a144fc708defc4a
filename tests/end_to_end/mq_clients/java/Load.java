import com.ibm.msg.client.jms.JmsConnectionFactory;
import com.ibm.msg.client.jms.JmsFactoryFactory;
import com.ibm.msg.client.wmq.WMQConstants;
import java.util.ArrayList;
import java.util.List;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.Topic;

/**
 * Transacted JMS load, for a gateway that is killed meanwhile. A unit of work has a number and ten messages, "unit/n".
 *
 * <p>usage: Load PORT CHANNEL USER PASSWORD send|receive|publish|prepare|subscribe UNITS. The last three use a topic,
 * to which prepare makes a durable subscription, and the others a queue. It prints for each unit of work "committed", "lost" (the
 * failure came before the commit) or "doubt" (the commit itself failed), with the messages of the unit; it connects anew
 * after a failure, and never does a unit of work again. To receive it goes on until the queue is empty.
 */
final class Load {
    private static final int MESSAGES = 10;
    private static final long PATIENCE_MS = 60_000;

    private final JmsConnectionFactory factory;
    private final String[] given;
    private Connection connection;
    private Session session;
    private MessageProducer producer;
    private MessageConsumer consumer;

    private Load(String[] given) throws JMSException {
        this.given = given;
        factory = JmsFactoryFactory.getInstance(WMQConstants.WMQ_PROVIDER).createConnectionFactory();
        factory.setStringProperty(WMQConstants.WMQ_HOST_NAME, "127.0.0.1");
        factory.setIntProperty(WMQConstants.WMQ_PORT, Integer.parseInt(given[0]));
        factory.setStringProperty(WMQConstants.WMQ_CHANNEL, given[1]);
        factory.setIntProperty(WMQConstants.WMQ_CONNECTION_MODE, WMQConstants.WMQ_CM_CLIENT);
        factory.setBooleanProperty(WMQConstants.USER_AUTHENTICATION_MQCSP, true);
        factory.setStringProperty(WMQConstants.CLIENT_ID, "load");
    }

    public static void main(String[] given) throws Exception {
        Load load = new Load(given);
        load.connect();
        if (given[4].equals("prepare")) {
            load.consumer.close();
        } else if (load.sends()) {
            for (int unit = 0; unit < Integer.parseInt(given[5]); unit++) {
                load.send(unit);
            }
        } else {
            while (load.receive()) {
                continue;
            }
        }
        System.exit(0);
    }

    private boolean sends() {
        return given[4].equals("send") || given[4].equals("publish");
    }

    private void open() throws JMSException {
        if (given[4].equals("send") || given[4].equals("receive")) {
            Queue queue = session.createQueue("queue:///ORDERS");
            producer = session.createProducer(queue);
            consumer = sends() ? null : session.createConsumer(queue);
        } else {
            Topic topic = session.createTopic("topic://plant/load");
            producer = session.createProducer(topic);
            consumer = sends() ? null : session.createDurableSubscriber(topic, "load");
        }
    }

    private void connect() throws Exception {
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (true) {
            try {
                connection = factory.createConnection(given[2], given[3]);
                connection.start();
                session = connection.createSession(true, Session.SESSION_TRANSACTED);
                open();
                return;
            } catch (JMSException error) {
                if (System.currentTimeMillis() > end) {
                    throw error;
                }
                Thread.sleep(100);
            }
        }
    }

    private void send(int unit) throws Exception {
        List<String> texts = new ArrayList<>();
        String outcome = "lost";
        try {
            for (int number = 0; number < MESSAGES; number++) {
                texts.add(unit + "/" + number);
                producer.send(session.createTextMessage(unit + "/" + number));
            }
            outcome = "doubt";
            session.commit();
            tell("committed", texts);
        } catch (JMSException error) {
            tell(outcome, texts);
            reconnect();
        }
    }

    private boolean receive() throws Exception {
        List<String> texts = new ArrayList<>();
        String outcome = "lost";
        try {
            for (int number = 0; number < MESSAGES; number++) {
                Message message = consumer.receive(1_000);
                if (message == null) {
                    break;
                }
                texts.add(message.getBody(String.class));
            }
            outcome = "doubt";
            session.commit();
            tell("committed", texts);
            return !texts.isEmpty();
        } catch (JMSException error) {
            tell(outcome, texts);
            reconnect();
            return true;
        }
    }

    private void reconnect() throws Exception {
        try {
            connection.close();
        } catch (JMSException error) {
            // it is gone already
        }
        connect();
    }

    private static void tell(String outcome, List<String> texts) {
        System.out.println(outcome + " " + String.join(" ", texts));
    }
}
