// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// recorder is a test whose failures do not fail the real test.
type recorder struct {
	testing.TB
	name string

	mu       sync.Mutex
	failures []string
	logs     []string
	cleanups []func()
}

func (r *recorder) Helper()                      {}
func (r *recorder) Name() string                 { return r.name }
func (r *recorder) Cleanup(f func())             { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Failed() bool                 { return len(r.failures) > 0 }
func (r *recorder) Log(args ...any)              { r.logs = append(r.logs, fmt.Sprint(args...)) }
func (r *recorder) Error(args ...any)            { r.record(fmt.Sprint(args...)) }
func (r *recorder) Fatal(args ...any)            { r.record(fmt.Sprint(args...)); runtime.Goexit() }
func (r *recorder) Errorf(f string, args ...any) { r.record(fmt.Sprintf(f, args...)) }
func (r *recorder) Fatalf(f string, args ...any) { r.record(fmt.Sprintf(f, args...)); runtime.Goexit() }

func (r *recorder) record(failure string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, failure)
}

// run runs a test and its clean-ups and returns the failure messages.
func (r *recorder) run(test func(t testing.TB)) []string {
	var group sync.WaitGroup
	group.Go(func() {
		defer func() {
			for _, f := range r.cleanups {
				f()
			}
		}()
		test(r)
	})
	group.Wait()
	return r.failures
}

func TestForTestNamespace(t *testing.T) {
	names := make(chan string, 2)
	var client *corev1client.CoreV1Client
	for range 2 {
		t.Run("in/a namespace", func(t *testing.T) {
			env := ForTest(t, TestOptions{NamespaceLabels: map[string]string{"team": "blue"}})
			client = corev1client.NewForConfigOrDie(env.RESTConfig())
			namespace, err := client.Namespaces().Get(t.Context(), env.Namespace, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(env.Namespace, "testfortestnamespace-in-a-namespace-") {
				t.Errorf("namespace is %s", env.Namespace)
			}
			want := map[string]string{
				"team":                   "blue",
				"trueup.dev/test":        namespacePrefixOf(t),
				corev1.LabelMetadataName: env.Namespace,
			}
			if diff := cmp.Diff(want, namespace.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			// The service account that pods need exists immediately.
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "first"},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}},
			}
			if _, err := client.Pods(env.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
			names <- env.Namespace
		})
	}
	first, second := <-names, <-names
	if first == second {
		t.Errorf("two tests used the namespace %s", first)
	}
	for _, name := range []string{first, second} {
		namespace, err := client.Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && namespace.DeletionTimestamp == nil {
			t.Errorf("the namespace %s is not being deleted after its test", name)
		}
		eventually(t, 30*time.Second, "the namespace "+name+" no longer exists", func() bool {
			_, err := client.Namespaces().Get(t.Context(), name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}
}

func namespacePrefixOf(t *testing.T) string {
	return strings.TrimSuffix(namespacePrefix(t.Name()), "-")
}

func TestForTestSharesOneControlPlane(t *testing.T) {
	var mu sync.Mutex
	hosts := map[string]int{}
	t.Run("group", func(t *testing.T) {
		for range 4 {
			t.Run("parallel", func(t *testing.T) {
				t.Parallel()
				env := ForTest(t, TestOptions{CRDs: []any{newCRD("Saucer")}})
				mu.Lock()
				defer mu.Unlock()
				hosts[env.RESTConfig().Host]++
			})
		}
	})
	if len(hosts) != 1 {
		t.Errorf("tests ran on %v, want one control plane", hosts)
	}
}

func TestForTestReportsThatTheControlPlaneDied(t *testing.T) {
	if testing.Short() {
		t.Skip("starts two control planes: with -short, TestCrashLater ends a process that stands for one")
	}
	t.Setenv(KubeconfigVariable, "")
	var progress syncBuffer
	t.Setenv(SharedVariable, "1s")
	found, err := findBinary(t.Context(), &Options{Progress: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	// The binary has a separate name, so that no other test's control plane is killed.
	binary := filepath.Join(t.TempDir(), "mortal")
	if err := os.Symlink(found, binary); err != nil {
		t.Fatal(err)
	}
	o := TestOptions{
		Options: Options{Binary: binary, Controllers: []string{"none"}, DisablePods: true, Progress: &progress},
	}
	first := &recorder{TB: t, name: "TestFirst"}
	failures := first.run(func(t testing.TB) {
		env := ForTest(t, o)
		controlPlane, err := os.FindProcess(env.server.(*lease).ready.PID)
		if err != nil {
			t.Fatal(err)
		}
		if err := controlPlane.Kill(); err != nil {
			t.Fatal(err)
		}
		<-env.Done()
		if _, err := os.Stat(env.Dir()); !os.IsNotExist(err) {
			t.Errorf("the directory of the killed control plane still exists: %v", err)
		}
	})
	want := "before the end of the test: sandbox: the control plane exited"
	if len(failures) != 1 || !strings.HasPrefix(failures[0], want) {
		t.Errorf("the test failed with %q, want %q", failures, want)
	}
	eventually(
		t, 10*time.Second, "the end is reported immediately",
		func() bool { return strings.Contains(progress.String(), "the control plane exited") },
	)

	second := &recorder{TB: t, name: "TestSecond"}
	failures = second.run(func(t testing.TB) { ForTest(t, o) })
	want = "before this test: sandbox: the control plane exited"
	if len(failures) != 1 || !strings.HasPrefix(failures[0], want) {
		t.Errorf("the next test failed with %q, want %q", failures, want)
	}
}

func TestForTestFailures(t *testing.T) {
	cases := map[string]struct {
		o    TestOptions
		want string
	}{
		"options": {TestOptions{Options: Options{Verbosity: -1}}, "Verbosity: must not be negative"},
		"CRDs":    {TestOptions{CRDs: []any{"missing.yaml"}}, "missing.yaml: no such file"},
		"labels":  {TestOptions{NamespaceLabels: map[string]string{"a": "not valid"}}, "creating the test's namespace"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.o.Verbosity < 0 {
				c.o.Progress = io.Discard
			}
			r := &recorder{TB: t, name: t.Name()}
			failures := r.run(func(t testing.TB) { ForTest(t, c.o) })
			if len(failures) != 1 || !strings.Contains(failures[0], c.want) {
				t.Errorf("the test failed with %q, want %q in it", failures, c.want)
			}
		})
	}
}

func TestForTestStopsBeforeTheDeadline(t *testing.T) {
	withoutVariables(t)
	t.Setenv(behaviorVariable, "never ready")
	o := TestOptions{Options: Options{Binary: installFake(t, t.TempDir(), binaryName), Progress: io.Discard}}
	limited := &limitedRecorder{recorder{TB: t, name: "TestLimited"}}
	failures := limited.run(func(testing.TB) { ForTest(limited, o) })
	if len(failures) != 1 || !strings.Contains(failures[0], errTestDeadline.Error()) {
		t.Errorf("the test failed with %q, want %q in it", failures, errTestDeadline)
	}
}

// limitedRecorder is a test whose deadline is near.
type limitedRecorder struct{ recorder }

func (*limitedRecorder) Deadline() (time.Time, bool) {
	return time.Now().Add(deadlineMargin + 100*time.Millisecond), true
}

func TestNamespacePrefix(t *testing.T) {
	long := strings.Repeat("Long", 30)
	for test, want := range map[string]string{
		"TestWebsite":                 "testwebsite-",
		"TestWebsite/theme_changes":   "testwebsite-theme-changes-",
		"TestA/b,_c/__d__":            "testa-b-c-d-",
		"BenchmarkX-8":                "benchmarkx-8-",
		"TestÜmlaut/日本":               "test-mlaut-",
		"/日本":                         "test-",
		long:                          strings.ToLower(long)[:57] + "-",
		long[:56] + "/x":              strings.ToLower(long)[:56] + "-",
		"TestPath/../../etc/passwd#1": "testpath-etc-passwd-1-",
	} {
		got := namespacePrefix(test)
		if got != want {
			t.Errorf("prefix for %q is %q, want %q", test, got, want)
		}
		if problems := validation.IsDNS1123Label(got + "abcde"); len(problems) > 0 {
			t.Errorf("%qabcde is not a valid name of a namespace: %v", got, problems)
		}
	}
}
