// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// serviceAccountController is the controller that creates the default service account of a namespace.
const serviceAccountController = "serviceaccount-controller"

// deadlineMargin is how long before the deadline of the test the start is aborted, so that the test fails with an error
// instead of a stack dump.
const deadlineMargin = 5 * time.Second

// TestOptions configures ForTest.
type TestOptions struct {
	// Options configure the control plane. Tests with the same options share one.
	Options

	// CRDs are the definitions to install first, see Sandbox.InstallCRDs. They are not removed. Default: none.
	CRDs []any

	// NamespaceLabels are the labels of the test's namespace, for example for Pod Security. Default: only trueup.dev/test.
	NamespaceLabels map[string]string
}

// Env is the environment of a test.
type Env struct {
	*Sandbox

	// Namespace is the name of the test's own namespace.
	Namespace string
}

// ForTest returns a control plane for t, with served CRDs and a new namespace. If that fails, it ends t.
//
// The first call starts the control plane; later calls with the same Options (Progress, LogOutput and StartTimeout
// aside) share it, also from parallel tests. It stops when the test binary ends; tests do not stop it. The namespace is
// named after the test. At the end of t its deletion is requested, and ForTest does not wait for it. If the controllers
// create a default service account, ForTest waits for it, so that pods can be created immediately.
//
// CRDs and other cluster-scoped objects are not deleted, and parallel tests share them.
func ForTest(t testing.TB, o TestOptions) *Env {
	t.Helper()
	s, err := sharedSandbox(t, o.Options)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := s.InstallCRDs(ctx, o.CRDs...); err != nil {
		t.Fatal(orDeath(s, err))
	}
	client, err := corev1client.NewForConfig(s.RESTConfig())
	if err != nil {
		t.Fatalf("sandbox: %v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, namespaceTimeout)
	defer cancel()
	namespace, err := createNamespace(ctx, client, t.Name(), o.NamespaceLabels)
	if err != nil {
		t.Fatal(orDeath(s, fmt.Errorf("sandbox: creating the test's namespace: %w", err)))
	}
	t.Cleanup(func() { endTest(t, s, client, namespace) })
	if makesServiceAccounts(ctx, s, client, &o.Options) {
		if err := awaitServiceAccount(ctx, client, namespace); err != nil {
			t.Fatal(orDeath(s, fmt.Errorf("sandbox: waiting for the test's namespace %s: %w", namespace, err)))
		}
	}
	return &Env{Sandbox: s, Namespace: namespace}
}

// makesServiceAccounts reports whether new namespaces get a default service account.
func makesServiceAccounts(ctx context.Context, s *Sandbox, client corev1client.CoreV1Interface, o *Options) bool {
	if s.process != nil {
		return o.Controllers == nil || slices.Contains(o.Controllers, serviceAccountController)
	}
	// In an existing cluster, the namespace default has the account if namespaces get one at all.
	_, err := client.ServiceAccounts(metav1.NamespaceDefault).Get(ctx, defaultServiceAccount, metav1.GetOptions{})
	return err == nil
}

// endTest deletes the test's namespace, or reports that the control plane has ended.
func endTest(t testing.TB, s *Sandbox, client corev1client.CoreV1Interface, namespace string) {
	if err := s.Err(); err != nil {
		t.Errorf("before the end of the test: %v", err)
		return
	}
	// The context of the test has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), namespaceTimeout)
	defer cancel()
	err := client.Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(orDeath(s, fmt.Errorf("sandbox: deleting the test's namespace %s: %w", namespace, err)))
	}
}

// orDeath returns why the control plane has ended, if it has. That explains err, which then is a refused connection.
func orDeath(s *Sandbox, err error) error {
	if death := s.Err(); death != nil {
		return death
	}
	return err
}

// shared holds the control planes of this test binary.
var shared = struct {
	sync.Mutex
	starts map[string]func() (*Sandbox, error)
}{starts: map[string]func() (*Sandbox, error){}}

// sharedSandbox returns the control plane for o, which the first caller starts.
func sharedSandbox(t testing.TB, o Options) (*Sandbox, error) {
	if err := o.prepare(); err != nil {
		return nil, err
	}
	key := fmt.Sprintf("%q %q %q %q %t %d", o.Binary, o.Kubeconfig, o.Dir, o.Controllers, o.DisablePods, o.Verbosity)
	shared.Lock()
	start, ok := shared.starts[key]
	if !ok {
		start = sync.OnceValues(func() (*Sandbox, error) { return startShared(t, o) })
		shared.starts[key] = start
	}
	shared.Unlock()
	s, err := start()
	if err != nil {
		return nil, err
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("before this test: %w", err)
	}
	return s, nil
}

func startShared(t testing.TB, o Options) (*Sandbox, error) {
	// Do not use the context of t, because other tests wait for this as well.
	ctx := context.Background()
	if limited, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, ok := limited.Deadline(); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadlineCause(ctx, deadline.Add(-deadlineMargin), errTestDeadline)
			defer cancel()
		}
	}
	s, err := Start(ctx, o)
	if err != nil {
		return nil, err
	}
	go func() {
		<-s.Done()
		// Report it immediately: a test that waits for its objects may wait until its own timeout, and clean-up functions do
		// not run then.
		if err := s.Err(); !errors.Is(err, ErrStopped) {
			say(o.Progress, "%v\n", err)
		}
	}()
	return s, nil
}

var errTestDeadline = errors.New(
	"the deadline of the test is near; compiled packages are cached, " +
		"so run the test again or increase the -timeout flag of go test",
)
