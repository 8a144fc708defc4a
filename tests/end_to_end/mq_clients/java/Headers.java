import com.ibm.mq.headers.MQDLH;
import com.ibm.mq.headers.MQHeader;
import com.ibm.mq.headers.MQHeaderList;
import com.ibm.mq.headers.MQRFH;
import com.ibm.mq.headers.MQRFH2;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.StringJoiner;

/**
 * Headers as com.ibm.mq.headers reads and writes them. Each line of the input is a case, and each line of the output its
 * result. Texts are the hexadecimal digits of their UTF-8, and fields are between tabs:
 *
 * <pre>
 * read  FORMAT CCSID ENCODING DATA FOLDER:NAME,...        the headers of DATA, the bytes behind them
 * write KIND CCSID ENCODING NEXT-FORMAT NEXT-CCSID NEXT-ENCODING FLAGS NAME=VALUE,...     a header
 * </pre>
 *
 * <p>An MQRFH has its NameValueString in the place of names and values: this class reads no quotes, and writes NULs.
 */
final class Headers {
    private static final HexFormat HEX = HexFormat.of();

    private Headers() {}

    public static void main(String[] given) throws Exception {
        BufferedReader cases = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream results = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        for (String line = cases.readLine(); line != null; line = cases.readLine()) {
            String[] fields = line.split("\t", -1);
            String result;
            try {
                result = fields[0].equals("read") ? read(fields) : write(fields);
            } catch (Exception error) {
                result = "error " + error;
            }
            results.println(result);
        }
        results.flush();
    }

    private static String read(String[] fields) throws Exception {
        DataInputStream data = new DataInputStream(new ByteArrayInputStream(HEX.parseHex(fields[4])));
        int page = Integer.parseInt(fields[2]);
        StringJoiner told = new StringJoiner("\t");
        MQHeaderList headers = new MQHeaderList(data, fields[1], Integer.parseInt(fields[3]), page);
        for (Object each : headers) {
            told.add(told((MQHeader) each, fields[5]));
        }
        return told.add(HEX.formatHex(data.readAllBytes())).toString();
    }

    private static String told(MQHeader header, String asked) throws Exception {
        if (header instanceof MQRFH2 rfh2) {
            StringJoiner values = new StringJoiner(",");
            for (String each : asked.isEmpty() ? new String[0] : asked.split(",")) {
                String[] name = each.split(":");
                String value = rfh2.getStringFieldValue(name[0], text(name[1]));
                values.add(value == null ? "null" : hex(value));
            }
            return "MQRFH2 " + described(rfh2.getFormat(), rfh2.getCodedCharSetId(), rfh2.getEncoding()) + " "
                    + rfh2.getFlags() + " " + values;
        }
        if (header instanceof MQRFH rfh) {
            return "MQRFH " + described(rfh.getFormat(), rfh.getCodedCharSetId(), rfh.getEncoding()) + " "
                    + rfh.getFlags() + " " + hex(rfh.getNameValueData().stripTrailing());
        }
        MQDLH dlh = (MQDLH) header;
        return "MQDLH " + described(dlh.getFormat(), dlh.getCodedCharSetId(), dlh.getEncoding()) + " " + dlh.getReason()
                + " " + hex(dlh.getDestQName().strip()) + "," + hex(dlh.getDestQMgrName().strip()) + ","
                + hex(dlh.getPutApplName().strip());
    }

    private static String write(String[] fields) throws Exception {
        int page = Integer.parseInt(fields[2]);
        int encoding = Integer.parseInt(fields[3]);
        ByteArrayOutputStream written = new ByteArrayOutputStream();
        MQHeader header;
        switch (fields[1]) {
            case "MQRFH2" -> {
                MQRFH2 rfh2 = new MQRFH2();
                rfh2.setEncoding(Integer.parseInt(fields[6]));
                rfh2.setCodedCharSetId(Integer.parseInt(fields[5]));
                rfh2.setFormat(fields[4]);
                rfh2.setFlags(Integer.parseInt(fields[7]));
                for (String each : fields[8].split(",")) {
                    String[] pair = each.split("=", -1);
                    rfh2.setFieldValue("usr", text(pair[0]), text(pair[1]));
                }
                header = rfh2;
            }
            case "MQRFH" -> {
                MQRFH rfh = new MQRFH();
                rfh.setEncoding(Integer.parseInt(fields[6]));
                rfh.setCodedCharSetId(Integer.parseInt(fields[5]));
                rfh.setFormat(fields[4]);
                rfh.setFlags(Integer.parseInt(fields[7]));
                rfh.setNameValueString(text(fields[8]));
                header = rfh;
            }
            default -> {
                MQDLH dlh = new MQDLH();
                dlh.setEncoding(Integer.parseInt(fields[6]));
                dlh.setCodedCharSetId(Integer.parseInt(fields[5]));
                dlh.setFormat(fields[4]);
                dlh.setReason(Integer.parseInt(fields[7]));
                String[] names = fields[8].split(",");
                dlh.setDestQName(text(names[0].split("=")[1]));
                dlh.setPutApplName(text(names[1].split("=")[1]));
                header = dlh;
            }
        }
        header.write(new DataOutputStream(written), encoding, page);
        return HEX.formatHex(written.toByteArray());
    }

    private static String described(String format, int page, int encoding) {
        return format.strip() + "/" + page + "/" + encoding;
    }

    private static String hex(String text) {
        return HEX.formatHex(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String text(String hex) {
        return new String(HEX.parseHex(hex), StandardCharsets.UTF_8);
    }
}
