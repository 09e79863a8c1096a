// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// varying are the parts of the output that differ between two runs.
var varying = regexp.MustCompile(`^ *[0-9.]+s |https://[0-9.:]+|v1\.[0-9.]+|process [0-9]+|has reconciled [0-9]+|[0-9]+ writes`)

// The guide shows what the demo prints.
func TestDemo_replicas(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until Leases expire: with -short, TestDemo_endOfReplicas starts replicas")
	}
	t.Parallel()
	for name, tc := range map[string]struct {
		flag  string
		start func(t *testing.T, env []string, args ...string) *command
	}{
		"in memory":            {"--memory", startNow},
		"on the control plane": {"--real", startWith},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := tc.start(t, withoutCluster, "demo", tc.flag, "--replicas=3")
			c.sees("divides the Websites")
			children := c.children()
			if code := c.ends(); code != 0 {
				t.Fatalf("exit code %d\n%s", code, c.output())
			}
			if want := "demo: ok: 24 websites, 3 replicas, 1 of them killed: 0 lost, 0 written by two"; c.lastLine() != want {
				t.Errorf("last line: %s\nwant:      %s", c.lastLine(), want)
			}
			if !strings.Contains(c.stdout.String(), "has ended by itself") { // the machine did not delay a Lease
				comparePrinted(t, c.stdout.String(), tc.flag)
			}
			if t.Failed() {
				t.Log(c.output())
			}
			c.leavesNothing(children, "")
		})
	}
}

// comparePrinted checks that each line of the guide was printed.
func comparePrinted(t *testing.T, output, flag string) {
	t.Helper()
	printed := map[string]bool{}
	for line := range strings.Lines(output) {
		printed[varying.ReplaceAllString(line, "…")] = true
	}
	shown := 0
	for line := range strings.Lines(blockOf(t, "../../docs/scale.md", "text demo-replicas")) {
		shown++
		if flag == "--real" {
			line = strings.Replace(line, "the API in memory of ", "", 1)
		}
		if !printed[varying.ReplaceAllString(line, "…")] {
			t.Errorf("the guide shows a line that was not printed: %s", line)
		}
	}
	if shown < 20 {
		t.Errorf("the guide shows only %d lines", shown)
	}
}

// blockOf returns the text of a block of a guide.
func blockOf(t *testing.T, guide, fence string) string {
	t.Helper()
	content, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(content), "```"+fence+"\n")
	text, _, closed := strings.Cut(after, "```")
	if !ok || !closed {
		t.Fatalf("%s has no block %q", guide, fence)
	}
	return text
}

// All replicas end with the demo, even if it is killed.
func TestDemo_endOfReplicas(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("finds the processes of the replicas in /proc")
	}
	for name, tc := range map[string]struct {
		signal syscall.Signal
		want   int
	}{
		"interrupted": {syscall.SIGINT, 130},
		"killed":      {syscall.SIGKILL, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startNow(t, withoutCluster, "demo", "--memory", "--replicas=2")
			c.sees("replica-a is process")
			replicas := c.children()
			if len(replicas) != 2 {
				t.Fatalf("processes of replicas: %v, want two", replicas)
			}
			c.signal(tc.signal)
			if code := c.ends(); code != tc.want {
				t.Errorf("exit code %d, want %d\n%s", code, tc.want, c.output())
			}
			if tc.signal == syscall.SIGINT {
				c.leavesNothing(replicas, "")
				return
			}
			eventually(t, func() bool { // the next start removes the files
				for _, pid := range replicas {
					if running, _, state := readStat(fmt.Sprintf("/proc/%d/stat", pid)); running != 0 && state != "Z" {
						return false
					}
				}
				return true
			})
		})
	}
}
