// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"bytes"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/converge"
	databasev1 "trueup.dev/examples/database/api/v1"
	rtesting "trueup.dev/testing"
)

var update = flag.Bool("update", false, "copy the output to the README")

const readme = "../../README.md"

// logFile collects what a controller logs. It is safe for concurrent use.
type logFile struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (f *logFile) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.buffer.Write(line)
}

func (f *logFile) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.buffer.String()
}

// startLogging starts the controller with a log level.
func (e *env) startLogging(level slog.Level) *logFile {
	e.Helper()
	file := &logFile{}
	handler := slog.NewTextHandler(file, &slog.HandlerOptions{Level: level})
	e.start(ctrl.Options{Logger: logr.FromSlogHandler(handler)})
	return file
}

var (
	reconcileID = regexp.MustCompile(` reconcileID=(\S+)`)
	// repeated are the keys that are on each line of a controller.
	repeated = regexp.MustCompile(`(^| )(time|controller\w*|Database[.]\w+|namespace|name|reconcileID|\w+Type)=\S+`)
)

// firstReconcile returns the log of the first reconcile, without the repeated keys.
func firstReconcile(e *env, log string) string {
	e.Helper()
	var id string
	var lines strings.Builder
	for line := range strings.Lines(log) {
		match := reconcileID.FindStringSubmatch(line)
		if match == nil || id != "" && match[1] != id {
			continue
		}
		id = match[1]
		lines.WriteString(strings.TrimLeft(repeated.ReplaceAllString(line, ""), " "))
	}
	if id == "" {
		e.Fatalf("no log of a reconcile:\n%s", log)
	}
	return strings.ReplaceAll(lines.String(), e.Namespace, metav1.NamespaceDefault)
}

// TestReadme compares the output in the README with the actual output. With the flag -update it copies the output.
func TestReadme(t *testing.T) {
	printed := map[string]string{}
	t.Run("runs", func(t *testing.T) {
		var mu sync.Mutex
		show := func(name, text string) {
			mu.Lock()
			defer mu.Unlock()
			printed["text "+name] = text
		}
		t.Run("log", func(t *testing.T) {
			e := newEnv(t)
			log := e.startLogging(slog.LevelInfo)
			e.Add(rtesting.With(newDatabase(), withBackup, withReplicas(2)))
			e.ready("shop")
			show("log", firstReconcile(e, log.String()))
		})
		t.Run("failure", func(t *testing.T) {
			e := newEnv(t)
			e.allowNoServers()
			log := e.startLogging(slog.LevelError)
			e.Add(newDatabase())
			db := e.condition("shop", databasev1.ConditionReady, metav1.ConditionFalse, "Forbidden")
			show("failure", firstReconcile(e, log.String()))
			show("conditions", conditionTable(db))
		})
	})
	report, err := converge.Check(t, passwordScenario(t, WrongCredentialsReconciler), converge.Options{Seed: 1})
	if err != nil || report.Failure == nil {
		t.Fatal("converge found no violation", err)
	}
	printed["text timeline"] = report.Failure.String()
	source, err := os.ReadFile("password_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, region, _ := strings.Cut(string(source), "// region wrong-credentials\n")
	region, _, _ = strings.Cut(region, "\n// endregion")
	printed["go wrong-credentials"] = region
	printed["text size"] = fmt.Sprintf("%d lines of Go", linesOfCode(t))
	compareReadme(t, printed)
}

// linesOfCode counts the lines of the controller without blank lines and comments.
func linesOfCode(t *testing.T) (count int) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				count++
			}
		}
	}
	return count
}

// The example shows how much code a controller needs.
func TestSize(t *testing.T) {
	if lines := linesOfCode(t); lines == 0 || lines > 385 {
		t.Errorf("the controller has %d lines, want at most 385", lines)
	}
}

// conditionTable formats all conditions that are not True.
func conditionTable(db *databasev1.Database) string {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TYPE\tSTATUS\tREASON\tMESSAGE")
	for _, c := range db.Status.Conditions {
		if c.Status == metav1.ConditionFalse {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	_ = w.Flush()
	return table.String()
}

// compareReadme fails the test unless the README has these blocks.
func compareReadme(t *testing.T, printed map[string]string) {
	t.Helper()
	before, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	after := string(before)
	for name, text := range printed {
		fence := "\n```" + name + "\n"
		head, rest, found := strings.Cut(after, fence)
		_, tail, closed := strings.Cut(rest, "\n```\n")
		if !found || !closed {
			t.Errorf("the README has no block %q", name)
			continue
		}
		after = head + fence + strings.TrimSuffix(text, "\n") + "\n```\n" + tail
	}
	switch {
	case after == string(before):
	case *update:
		if err := os.WriteFile(readme, []byte(after), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the README is out of date; run this test with -update (-README +output):\n%s",
			cmp.Diff(strings.Split(string(before), "\n"), strings.Split(after, "\n")))
	}
}

// No password or key is in the log at any level, in an event or in the status.
func TestDatabase_secretsAreNotLogged(t *testing.T) {
	e := newEnv(t)
	log := e.startLogging(slog.Level(-10))
	db := rtesting.With(newDatabase(), withTLS)
	e.Add(newCertificate("first"), db)
	e.ready("shop")
	secret := read(e, &corev1.Secret{}, "shop-credentials")
	e.Must(e.Delete(t.Context(), secret)) // generated again: another password
	again := &corev1.Secret{}
	e.Eventually(func() error {
		again.Name = secret.Name
		if err := e.Read(again); err != nil {
			return err
		}
		if again.UID == secret.UID {
			return fmt.Errorf("Secret %s still exists", again.Name)
		}
		return nil
	})
	e.ready("shop")

	var events corev1.EventList
	e.Must(e.List(t.Context(), &events))
	texts := []string{log.String(), fmt.Sprint(read(e, db, "shop").Status)}
	for _, event := range events.Items {
		texts = append(texts, event.Message)
	}
	if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "resource is in sync") }) {
		t.Error("the log has no debug lines")
	}
	key := newCertificate("first").Data["tls.key"]
	for _, confidential := range [][]byte{secret.Data["password"], again.Data["password"], key} {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, string(confidential)) }) {
			t.Errorf("a secret of %d characters is in the log, an event or the status", len(confidential))
		}
	}
}
