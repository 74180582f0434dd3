// Virtual threads: rows of bench/compare by Java's own forms. A fiber is a virtual thread, an
// unbuffered channel a SynchronousQueue, a wait group a CountDownLatch.
//
// The compiler may be older than the runtime (javac 17 beside a Java 25): virtual threads are
// started by a handle, which the compiler for the runtime's own version would not need.
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;

public final class Workloads {
    interface Body { void run() throws Exception; }

    interface Workload { Map<String, Double> run(double scale) throws Exception; }

    static final int REFUSED = 3;
    static final Map<String, Workload> ALL = new LinkedHashMap<>();
    static final MethodHandle START = findStart();

    static MethodHandle findStart() {
        try {
            return MethodHandles.lookup().findStatic(Thread.class, "startVirtualThread",
                MethodType.methodType(Thread.class, Runnable.class));
        } catch (ReflectiveOperationException missing) {
            throw new ExceptionInInitializerError(missing);
        }
    }

    static Thread go(Body body) {
        Runnable runnable = () -> {
            try {
                body.run();
            } catch (Exception failure) {
                failure.printStackTrace();
                System.exit(1);
            }
        };
        try {
            return (Thread) START.invokeExact(runnable);
        } catch (Throwable failure) {
            throw new IllegalStateException(failure);
        }
    }

    static int count(double full, double scale) { return (int) Math.max(1, full * scale); }

    static double milliseconds(long since) { return (System.nanoTime() - since) / 1e6; }

    static void spawnBatches(int count) throws Exception {
        for (int done = 0; done < count; done += 100) {
            CountDownLatch batch = new CountDownLatch(100);
            for (int i = 0; i < 100; ++i) go(batch::countDown);
            batch.await();
        }
    }

    static void pingPong(int count) throws Exception {
        SynchronousQueue<Integer> there = new SynchronousQueue<>(), back = new SynchronousQueue<>();
        Thread other = go(() -> {
            for (int i = 0; i < count; ++i) back.put(there.take());
        });
        for (int i = 0; i < count; ++i) {
            there.put(i);
            back.take();
        }
        other.join();
    }

    static void skynet(SynchronousQueue<Long> up, long number, int size) throws Exception {
        if (size == 1) {
            up.put(number);
            return;
        }
        SynchronousQueue<Long> mine = new SynchronousQueue<>();
        for (int i = 0; i < 10; ++i) {
            long first = number + (long) i * (size / 10);
            go(() -> skynet(mine, first, size / 10));
        }
        long sum = 0;
        for (int i = 0; i < 10; ++i) sum += mine.take();
        up.put(sum);
    }

    static double runSkynet(double scale) throws Exception {
        int leaves = 1;
        while (leaves * 10 <= count(1_000_000, scale)) leaves *= 10;
        final int size = leaves;
        SynchronousQueue<Long> root = new SynchronousQueue<>();
        long start = System.nanoTime();
        go(() -> skynet(root, 0, size));
        long sum = root.take(), expected = (long) size * (size - 1) / 2;
        double taken = milliseconds(start);
        if (sum != expected) throw new IllegalStateException("the sum is " + sum);
        return taken;
    }

    static double sleepers(int threads, int sleeps) throws Exception {
        long start = System.nanoTime();
        CountDownLatch all = new CountDownLatch(threads);
        for (int i = 0; i < threads; ++i) {
            go(() -> {
                for (int j = 0; j < sleeps; ++j) Thread.sleep(10);
                all.countDown();
            });
        }
        all.await();
        return milliseconds(start);
    }

    static long fib(int n) throws Exception {
        if (n < 2) return n;
        long[] left = new long[1];
        Thread child = go(() -> left[0] = fib(n - 1));
        long right = fib(n - 2);
        child.join();
        return left[0] + right;
    }

    // The same factor on the number of calls as in the other programs.
    static double runFib(double scale) throws Exception {
        int n = Math.max(1, 27 - (int) Math.round(Math.log(1 / scale) / Math.log(1.618)));
        long start = System.nanoTime();
        fib(n);
        return milliseconds(start);
    }

    static long[] processor() throws Exception {
        long ticks = 0, switches = 0;
        try (var tasks = Files.list(Path.of("/proc/self/task"))) {
            for (Path task : tasks.collect(Collectors.toList())) {
                ticks += Long.parseLong(Files.readString(task.resolve("schedstat")).split(" ")[0]);
                for (String line : Files.readAllLines(task.resolve("status"))) {
                    if (!line.startsWith("voluntary_ctxt_switches:")) continue;
                    switches += Long.parseLong(line.substring(line.indexOf(':') + 1).trim());
                }
            }
        }
        return new long[] {ticks, switches};
    }

    static Map<String, Double> lightSleeps(int threads, long pause, double scale) throws Exception {
        double seconds = Math.max(0.1, 2 * scale);
        int count = (int) (seconds * 1e9 / pause);
        long[] late = new long[threads * count];
        long[] before = processor();
        long start = System.nanoTime();
        CountDownLatch all = new CountDownLatch(threads);
        for (int i = 0; i < threads; ++i) {
            int mine = i * count;
            go(() -> {
                long due = System.nanoTime();
                for (int j = 0; j < count; ++j) {
                    due = Math.max(due + pause, System.nanoTime());
                    while (System.nanoTime() < due) LockSupport.parkNanos(due - System.nanoTime());
                    late[mine + j] = System.nanoTime() - due;
                }
                all.countDown();
            });
        }
        all.await();
        double elapsed = milliseconds(start);
        long[] after = processor();
        Arrays.sort(late);
        Map<String, Double> found = new LinkedHashMap<>();
        found.put("cpu_percent", (after[0] - before[0]) / 1e4 / elapsed);
        found.put("switches_per_second", 1e3 * (after[1] - before[1]) / elapsed);
        for (var part : Map.of("late_p50_us", 0.5, "late_p99_us", 0.99, "late_p999_us", 0.999).entrySet()) {
            int rank = (int) Math.ceil(part.getValue() * late.length);
            found.put(part.getKey(), late[Math.max(rank, 1) - 1] / 1e3);
        }
        return found;
    }

    interface Counted { void run(int count) throws Exception; }

    // After a warm-up with a tenth of the count, as the compiler of the runtime wants one.
    static Workload perUnit(String metric, int full, Counted run) {
        return scale -> {
            int count = count(full, scale);
            run.run(Math.max(1, count / 10));
            long start = System.nanoTime();
            run.run(count);
            return Map.of(metric, (System.nanoTime() - start) / (double) count);
        };
    }

    static {
        ALL.put("W1", perUnit("ns_per_fiber", 2_000_000, Workloads::spawnBatches));
        ALL.put("W3_pingpong", perUnit("ns_per_round_trip", 1_000_000, Workloads::pingPong));
        ALL.put("W5", scale -> Map.of("ms", runSkynet(scale)));
        ALL.put("W7_100k", scale -> Map.of("ms", sleepers(count(100_000, scale), 10)));
        ALL.put("W7_1m", scale -> Map.of("ms", sleepers(count(1_000_000, scale), 1)));
        ALL.put("W10", scale -> Map.of("ms", runFib(scale)));
        ALL.put("W14_ticker", scale -> lightSleeps(1, 1_000_000, scale));
        ALL.put("W14_sleepers", scale -> lightSleeps(100, 10_000_000, scale));
    }

    static double peakBytes() throws Exception {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmHWM:")) return 1024 * Double.parseDouble(line.replaceAll("\\D", ""));
        }
        return 0;
    }

    static String option(List<String> arguments, String name, String otherwise) {
        int at = arguments.indexOf(name);
        return at < 0 ? otherwise : arguments.get(at + 1);
    }

    static String json(Map<String, Double> metrics) {
        return metrics.entrySet().stream().map(m -> "\"" + m.getKey() + "\":" + m.getValue())
            .collect(Collectors.joining(",", "{", "}"));
    }

    public static void main(String[] given) throws Exception {
        List<String> arguments = List.of(given);
        if (arguments.contains("--list")) {
            String names = ALL.keySet().stream().map(name -> "\"" + name + "\"")
                .collect(Collectors.joining(",", "[", "]"));
            System.out.println("{\"subject\":\"java\",\"workloads\":" + names + ",\"pools\":[]}");
            return;
        }
        Workload workload = ALL.get(arguments.get(0));
        if (workload == null) {
            System.err.println("The Java rival does not know the workload " + arguments.get(0) + ".");
            System.exit(REFUSED);
        }
        String workers = option(arguments, "--workers", "1");
        System.setProperty("jdk.virtualThreadScheduler.parallelism", workers);
        System.setProperty("jdk.virtualThreadScheduler.maxPoolSize", workers);
        double scale = Double.parseDouble(option(arguments, "--scale", "1"));
        // In a virtual thread, as the others run in a fiber.
        go(() -> {
            Map<String, Double> metrics = new LinkedHashMap<>(workload.run(scale));
            metrics.put("cpu_ms", processor()[0] / 1e6);
            metrics.put("peak_rss_bytes", peakBytes());
            System.out.println("{\"subject\":\"java\",\"workload\":\"" + arguments.get(0)
                + "\",\"workers\":" + workers + ",\"pool\":\"\",\"metrics\":" + json(metrics) + "}");
            System.exit(0);
        });
        Thread.sleep(Long.MAX_VALUE);
    }
}
