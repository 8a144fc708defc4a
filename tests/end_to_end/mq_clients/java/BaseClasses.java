import com.ibm.mq.MQException;
import com.ibm.mq.MQGetMessageOptions;
import com.ibm.mq.MQMessage;
import com.ibm.mq.MQPutMessageOptions;
import com.ibm.mq.MQQueue;
import com.ibm.mq.MQQueueManager;
import com.ibm.mq.constants.CMQC;
import com.ibm.mq.constants.MQConstants;
import com.ibm.mq.headers.MQRFH2;
import java.util.Arrays;
import java.util.Hashtable;

/**
 * Programs with IBM MQ classes for Java, unmodified. Each scenario prints what a program would see, a line a fact.
 *
 * <p>usage: BaseClasses PORT CHANNEL USER PASSWORD SCENARIO...; a USER "-" sends no password.
 */
final class BaseClasses {
    private static final int[] SIZES = {0, 1, 10, 32_000, 32_700, 40_000, 100_000, 1_000_000, 4_000_000};

    private final Hashtable<String, Object> properties = new Hashtable<>();

    private BaseClasses(String[] given) {
        properties.put(CMQC.HOST_NAME_PROPERTY, "127.0.0.1");
        properties.put(CMQC.PORT_PROPERTY, Integer.valueOf(given[0]));
        properties.put(CMQC.CHANNEL_PROPERTY, given[1]);
        properties.put(CMQC.TRANSPORT_PROPERTY, CMQC.TRANSPORT_MQSERIES_CLIENT);
        properties.put(CMQC.APPNAME_PROPERTY, "orders");
        if (!given[2].equals("-")) {
            properties.put(CMQC.USER_ID_PROPERTY, given[2]);
            properties.put(CMQC.PASSWORD_PROPERTY, given[3]);
            properties.put(CMQC.USE_MQCSP_AUTHENTICATION_PROPERTY, Boolean.TRUE);
        }
    }

    public static void main(String[] given) throws Exception {
        MQException.log = null;
        BaseClasses programs = new BaseClasses(given);
        for (String scenario : Arrays.copyOfRange(given, 4, given.length)) {
            try {
                programs.run(scenario);
            } catch (MQException error) {
                System.out.println(scenario + ": refused " + error.getReason());
            }
        }
        System.exit(0);
    }

    private void run(String scenario) throws Exception {
        MQQueueManager manager = new MQQueueManager("", properties);
        switch (scenario) {
            case "connect" -> tell(scenario, name(manager), manager.getCommandLevel());
            case "sizes" -> sizes(manager);
            case "unit" -> unit(manager);
            case "browse" -> browse(manager);
            case "truncated" -> truncated(manager);
            case "wait" -> waiting(manager);
            case "closed" -> closed(manager);
            case "identity" -> identity(manager);
            case "reply" -> reply(manager);
            case "inquire" -> inquire(manager);
            case "properties" -> properties(manager);
            case "convert" -> convert(manager);
            case "stay" -> stay(manager);
            default -> throw new IllegalArgumentException(scenario);
        }
        manager.disconnect();
    }

    private static String name(MQQueueManager manager) throws Exception {
        return manager.getAttributeString(MQConstants.MQCA_Q_MGR_NAME, MQConstants.MQ_Q_MGR_NAME_LENGTH).strip();
    }

    private static void sizes(MQQueueManager manager) throws Exception {
        MQQueue queue = manager.accessQueue("ORDERS", MQConstants.MQOO_OUTPUT | MQConstants.MQOO_INPUT_SHARED);
        for (int size : SIZES) {
            byte[] body = new byte[size];
            for (int at = 0; at < size; at++) {
                body[at] = (byte) (at * 31);
            }
            queue.put(message(body), new MQPutMessageOptions());
            MQMessage got = new MQMessage();
            queue.get(got, new MQGetMessageOptions());
            byte[] data = new byte[got.getMessageLength()];
            got.readFully(data);
            tell("sizes", size, Arrays.equals(body, data));
        }
    }

    private static void unit(MQQueueManager manager) throws Exception {
        MQQueue queue = manager.accessQueue("ORDERS", MQConstants.MQOO_OUTPUT | MQConstants.MQOO_INPUT_SHARED);
        MQPutMessageOptions put = new MQPutMessageOptions();
        put.options = MQConstants.MQPMO_SYNCPOINT;
        queue.put(message("lost".getBytes()), put);
        manager.backout();
        tell("unit", "after back-out", reasonOfGet(queue));
        queue.put(message("kept".getBytes()), put);
        manager.commit();
        MQGetMessageOptions get = new MQGetMessageOptions();
        get.options = MQConstants.MQGMO_SYNCPOINT;
        MQMessage got = new MQMessage();
        queue.get(got, get);
        manager.backout();
        MQMessage again = new MQMessage();
        queue.get(again, get);
        manager.commit();
        tell("unit", again.readStringOfByteLength(again.getMessageLength()), again.backoutCount);
        tell("unit", "after commit", reasonOfGet(queue));
    }

    private static void browse(MQQueueManager manager) throws Exception {
        int options = MQConstants.MQOO_OUTPUT | MQConstants.MQOO_INPUT_SHARED | MQConstants.MQOO_BROWSE;
        MQQueue queue = manager.accessQueue("ORDERS", options);
        for (String body : new String[] {"a", "b", "c"}) {
            queue.put(message(body.getBytes()), new MQPutMessageOptions());
        }
        StringBuilder seen = new StringBuilder();
        int step = MQConstants.MQGMO_BROWSE_FIRST;
        try {
            while (true) {
                seen.append(text(queue, step));
                step = MQConstants.MQGMO_BROWSE_NEXT;
            }
        } catch (MQException error) {
            tell("browse", seen, error.getReason());
        }
        text(queue, MQConstants.MQGMO_BROWSE_FIRST);
        text(queue, MQConstants.MQGMO_BROWSE_NEXT);
        tell("browse", "under the cursor", text(queue, MQConstants.MQGMO_MSG_UNDER_CURSOR));
        tell("browse", "left", text(queue, 0) + text(queue, 0), reasonOfGet(queue));
    }

    private static void truncated(MQQueueManager manager) throws Exception {
        MQQueue queue = manager.accessQueue("ORDERS", MQConstants.MQOO_OUTPUT | MQConstants.MQOO_INPUT_SHARED);
        queue.put(message(new byte[9_000]), new MQPutMessageOptions());
        try {
            queue.get(new MQMessage(), new MQGetMessageOptions(), 1_000);
        } catch (MQException error) {
            tell("truncated", error.getCompCode(), error.getReason());
        }
        MQGetMessageOptions accepting = new MQGetMessageOptions();
        accepting.options = MQConstants.MQGMO_ACCEPT_TRUNCATED_MSG;
        MQMessage cut = new MQMessage();
        try {
            queue.get(cut, accepting, 1_000);
        } catch (MQException error) {
            tell("truncated", error.getReason(), cut.getMessageLength(), cut.getTotalMessageLength());
        }
        tell("truncated", "then", reasonOfGet(queue));
    }

    private static void waiting(MQQueueManager manager) throws Exception {
        MQQueue queue = manager.accessQueue("ORDERS", MQConstants.MQOO_INPUT_SHARED);
        MQGetMessageOptions get = new MQGetMessageOptions();
        get.options = MQConstants.MQGMO_WAIT;
        get.waitInterval = 2_500;
        long begin = System.nanoTime();
        try {
            queue.get(new MQMessage(), get);
        } catch (MQException error) {
            tell("wait", error.getReason(), (System.nanoTime() - begin) / 1_000_000 >= 2_500);
        }
    }

    private static void closed(MQQueueManager manager) throws Exception {
        for (String name : new String[] {"NOWHERE", "OTHERS", "SYSTEM.DEAD.LETTER.QUEUE"}) {
            try {
                manager.accessQueue(name, MQConstants.MQOO_OUTPUT);
                tell("closed", name, "opened");
            } catch (MQException error) {
                tell("closed", name, error.getReason());
            }
        }
    }

    private static void identity(MQQueueManager manager) throws Exception {
        MQQueue queue = manager.accessQueue("ORDERS", MQConstants.MQOO_OUTPUT | MQConstants.MQOO_INPUT_SHARED);
        MQMessage claimed = message("x".getBytes());
        claimed.userId = "admin";
        queue.put(claimed, new MQPutMessageOptions());
        MQMessage got = new MQMessage();
        queue.get(got, new MQGetMessageOptions());
        tell("identity", got.userId.strip(), got.putApplicationName.strip(), got.putDateTime != null);
    }

    private static void reply(MQQueueManager manager) throws Exception {
        MQQueue replies =
                manager.accessQueue("SYSTEM.DEFAULT.MODEL.QUEUE", MQConstants.MQOO_INPUT_EXCLUSIVE, "", "REPLY.*", "");
        MQMessage request = message("question".getBytes());
        request.messageType = MQConstants.MQMT_REQUEST;
        request.replyToQueueName = replies.getName();
        MQQueue orders = manager.accessQueue("ORDERS", MQConstants.MQOO_OUTPUT | MQConstants.MQOO_INPUT_SHARED);
        orders.put(request, new MQPutMessageOptions());
        MQMessage asked = new MQMessage();
        orders.get(asked, new MQGetMessageOptions());
        MQMessage answer = message("answer".getBytes());
        answer.persistence = MQConstants.MQPER_NOT_PERSISTENT;
        answer.correlationId = asked.messageId;
        manager.put(asked.replyToQueueName, answer);
        MQMessage got = new MQMessage();
        got.correlationId = request.messageId;
        MQGetMessageOptions get = new MQGetMessageOptions();
        get.matchOptions = MQConstants.MQMO_MATCH_CORREL_ID;
        replies.get(got, get);
        String name = asked.replyToQueueName;
        replies.close();
        int after = 0;
        try {
            manager.accessQueue(name, MQConstants.MQOO_OUTPUT);
        } catch (MQException error) {
            after = error.getReason();
        }
        tell("reply", got.readStringOfByteLength(got.getMessageLength()), name.startsWith("REPLY."), after);
    }

    private static void inquire(MQQueueManager manager) throws Exception {
        MQQueue queue = manager.accessQueue("ORDERS", MQConstants.MQOO_INQUIRE | MQConstants.MQOO_OUTPUT);
        queue.put(message("one".getBytes()), new MQPutMessageOptions());
        tell("inquire", queue.getCurrentDepth(), queue.getMaximumDepth(), queue.getName().strip());
        MQQueue taken = manager.accessQueue("ORDERS", MQConstants.MQOO_INPUT_SHARED);
        text(taken, 0);
    }

    /** Properties of a message on queues of each PROPCTL, by the default and by options of the get. */
    private static void properties(MQQueueManager manager) throws Exception {
        int[] options = {MQConstants.MQGMO_PROPERTIES_AS_Q_DEF, MQConstants.MQGMO_NO_PROPERTIES,
            MQConstants.MQGMO_PROPERTIES_FORCE_MQRFH2, MQConstants.MQGMO_PROPERTIES_IN_HANDLE};
        for (String control : new String[] {"COMPAT", "NONE", "ALL", "FORCE", "V6COMPAT"}) {
            MQQueue queue = manager.accessQueue("REPLY." + control, MQConstants.MQOO_INPUT_SHARED | MQConstants.MQOO_OUTPUT);
            StringBuilder seen = new StringBuilder();
            for (int option : options) {
                MQMessage put = message("body".getBytes());
                put.format = MQConstants.MQFMT_STRING;
                put.setStringProperty("colour", "blue");
                queue.put(put, new MQPutMessageOptions());
                MQGetMessageOptions get = new MQGetMessageOptions();
                get.options = option;
                MQMessage got = new MQMessage();
                queue.get(got, get);
                String colour;
                try {
                    colour = got.getStringProperty("colour");
                } catch (MQException error) {
                    colour = "" + error.getReason();
                }
                seen.append(got.format.strip()).append('/').append(colour).append(' ');
            }
            tell("properties", control, seen.toString().strip());
            queue.close();
        }
    }

    /** A text behind an MQRFH2 in other code pages, and data that cannot be converted. */
    private static void convert(MQQueueManager manager) throws Exception {
        MQQueue queue = manager.accessQueue("ORDERS", MQConstants.MQOO_INPUT_SHARED | MQConstants.MQOO_OUTPUT);
        for (int page : new int[] {500, 819, 1200, 4711}) {
            MQMessage put = new MQMessage();
            put.format = MQConstants.MQFMT_RF_HEADER_2;
            put.characterSet = 1208;
            put.encoding = 546;
            MQRFH2 header = new MQRFH2();
            header.setEncoding(546);
            header.setCodedCharSetId(1208);
            header.setFormat(MQConstants.MQFMT_STRING);
            header.setFieldValue("mine", "size", "Größe");
            header.write(put, 546, 1208);
            put.write("Größe".getBytes("UTF-8"));
            queue.put(put, new MQPutMessageOptions());
            MQGetMessageOptions get = new MQGetMessageOptions();
            get.options = MQConstants.MQGMO_CONVERT | MQConstants.MQGMO_PROPERTIES_FORCE_MQRFH2;
            MQMessage got = new MQMessage();
            got.characterSet = page;
            got.encoding = 273;
            int reason = 0;
            try {
                queue.get(got, get);
            } catch (MQException error) {
                reason = error.getReason();
            }
            MQRFH2 read = new MQRFH2(got, got.encoding, got.characterSet);
            byte[] body = new byte[got.getDataLength()];
            got.readFully(body);
            tell("convert", page, reason, got.characterSet, got.encoding, read.getCodedCharSetId(),
                    read.getStringFieldValue("mine", "size"),
                    new String(body, read.getCodedCharSetId() == 500 ? "Cp500" : read.getCodedCharSetId() == 819 ? "ISO-8859-1" : "UTF-8"));
        }
    }

    /** Takes a message in a unit of work, says so, and waits to be killed. */
    private static void stay(MQQueueManager manager) throws Exception {
        MQQueue queue = manager.accessQueue("ORDERS", MQConstants.MQOO_INPUT_SHARED);
        MQGetMessageOptions get = new MQGetMessageOptions();
        get.options = MQConstants.MQGMO_SYNCPOINT;
        queue.get(new MQMessage(), get);
        tell("stay", "taken");
        Thread.sleep(60_000);
    }

    private static MQMessage message(byte[] body) throws Exception {
        MQMessage made = new MQMessage();
        made.persistence = MQConstants.MQPER_PERSISTENT;
        made.write(body);
        return made;
    }

    private static String text(MQQueue queue, int options) throws Exception {
        MQGetMessageOptions get = new MQGetMessageOptions();
        get.options = options;
        MQMessage got = new MQMessage();
        queue.get(got, get);
        return got.readStringOfByteLength(got.getMessageLength());
    }

    private static int reasonOfGet(MQQueue queue) throws Exception {
        try {
            queue.get(new MQMessage(), new MQGetMessageOptions());
            return 0;
        } catch (MQException error) {
            return error.getReason();
        }
    }

    private static void tell(String scenario, Object... facts) {
        System.out.println(scenario + ": " + String.join(" ", Arrays.stream(facts).map(String::valueOf).toList()));
    }
}
