import java.io.FileInputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.concurrent.CountDownLatch;
import javax.net.SocketFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** What each program is asked and says, by tests/end_to_end/clients/streams.py. */
final class Given {
    static final String LAST = "end";

    final String version;
    final String transport;
    final int port;
    final String authority;
    final String name;
    final int count;
    private final String levels;
    private final CountDownLatch allAcknowledged;
    private final CountDownLatch lastReceived = new CountDownLatch(1);

    Given(String[] arguments) {
        version = arguments[0];
        transport = arguments[1];
        port = Integer.parseInt(arguments[2]);
        authority = arguments[3];
        name = arguments[4];
        count = Integer.parseInt(arguments[5]);
        levels = arguments[6];
        allAcknowledged = new CountDownLatch(count);
    }

    String client(String role) {
        return name + "-" + role;
    }

    boolean isWebSocket() {
        return transport.endsWith("websocket");
    }

    boolean isSecure() {
        return transport.equals("tls") || transport.startsWith("secure");
    }

    /** As both of Eclipse Paho's clients read it. */
    String address() {
        String scheme = isWebSocket() ? (isSecure() ? "wss" : "ws") : (isSecure() ? "ssl" : "tcp");
        return scheme + "://127.0.0.1:" + port + (isWebSocket() ? "/mqtt" : "");
    }

    int qos(int number) {
        return levels.charAt(number % levels.length()) - '0';
    }

    String topic(int number) {
        return name + "/" + number % 7;
    }

    byte[] payload(int number) {
        return Integer.toString(number).getBytes(StandardCharsets.US_ASCII);
    }

    /** Trusts the given authority alone. */
    TrustManagerFactory trust() throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (InputStream certificate = new FileInputStream(authority)) {
            store.setCertificateEntry("authority", CertificateFactory.getInstance("X.509").generateCertificate(certificate));
        }
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        return factory;
    }

    SocketFactory secureSockets() throws Exception {
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust().getTrustManagers(), null);
        return context.getSocketFactory();
    }

    void acknowledged(int number) {
        System.out.println("{\"acknowledged\": " + number + "}");
        allAcknowledged.countDown();
    }

    void awaitAcknowledgements() throws InterruptedException {
        allAcknowledged.await();
    }

    void received(byte[] payload, int qos) {
        String text = new String(payload, StandardCharsets.US_ASCII);
        if (text.equals(LAST)) {
            lastReceived.countDown();
        } else {
            System.out.println("{\"received\": " + Integer.parseInt(text) + ", \"qos\": " + qos + "}");
        }
    }

    /** Ends the program when the last message has come. */
    void end() throws InterruptedException {
        lastReceived.await();
        System.exit(0);
    }

    static void fail(Throwable error) {
        error.printStackTrace();
        System.exit(1);
    }
}
