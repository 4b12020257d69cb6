// SPDX-License-Identifier: MIT
// main() calls inner(), where all the time goes, for args[0] milliseconds of CPU time.
import java.lang.management.ManagementFactory;

public class Spin {
	static int inner(int[] values, int rounds) {
		int sum = 0;
		for (int i = 0; i < rounds; i++)
			sum = (sum + values[i % values.length] * i) % 1000003;
		return sum;
	}

	public static void main(String[] args) {
		int[] values = new int[1000];
		for (int i = 0; i < values.length; i++)
			values[i] = i;
		var threads = ManagementFactory.getThreadMXBean();
		long end = threads.getCurrentThreadCpuTime() + Long.parseLong(args[0]) * 1000000, sum = 0;
		while (threads.getCurrentThreadCpuTime() < end)
			sum += inner(values, 20000);
		System.out.println(sum);
	}
}
