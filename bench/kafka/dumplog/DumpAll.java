import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.tools.DumpLogSegments;

/** Runs kafka-dump-log once for every line of a file, in one JVM. */
public class DumpAll {
    static final class Exited extends RuntimeException {
        final int code;

        Exited(int code) {
            this.code = code;
        }
    }

    /** Arguments: a file of command lines, whose arguments are parted by tabs, and a folder for what they print. */
    public static void main(String[] args) throws IOException {
        List<String> lines = Files.readAllLines(Path.of(args[0]), StandardCharsets.UTF_8);
        Exit.setExitProcedure((code, message) -> {
            throw new Exited(code);
        });
        PrintStream stdout = System.out;
        PrintStream stderr = System.err;
        for (int i = 0; i < lines.size(); i++) {
            String base = args[1] + "/" + i;
            int code;
            try (PrintStream out = new PrintStream(new FileOutputStream(base + ".out"), false, StandardCharsets.UTF_8);
                 PrintStream err = new PrintStream(new FileOutputStream(base + ".err"), false, StandardCharsets.UTF_8)) {
                System.setOut(out);
                System.setErr(err);
                code = run(lines.get(i).split("\t", -1), err);
            } finally {
                System.setOut(stdout);
                System.setErr(stderr);
            }
            Files.writeString(Path.of(base + ".exit"), Integer.toString(code));
        }
    }

    static int run(String[] args, PrintStream err) {
        try {
            DumpLogSegments.main(args.length == 1 && args[0].isEmpty() ? new String[0] : args);
            return 0;
        } catch (Exited e) {
            return e.code;
        } catch (Throwable e) {
            // As a JVM prints what main throws, without the trace.
            err.println("Exception in thread \"main\" " + e);
            return 1;
        }
    }
}
