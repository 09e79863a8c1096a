// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
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

	// Private starts a control plane that other test binaries do not use: for a test that changes cluster-scoped objects
	// under fixed names, watches all namespaces, or stops the control plane. Tests of this binary with the same options
	// share it. Default: false; all test binaries that run at the same time share a control plane, see the package's
	// documentation.
	Private bool

	// CRDs are the definitions to install first, see Sandbox.InstallCRDs. They are not removed. Default: none.
	CRDs []any

	// LogRequests writes the requests that the API server has answered for this test into its log, which is shown if the
	// test fails or with the flag -v: one line each with verb, resource, object, user and response. Included are all
	// requests for the test's namespace, also of controllers, and those for cluster-scoped objects, several namespaces and
	// non-resource paths by others than the control plane. The latter may be of tests that run in parallel. It implies
	// Private. It is an error for the API in memory, and has no effect in an existing cluster. Default: false.
	LogRequests bool

	// NamespaceLabels are the labels of the test's namespace, for example for Pod Security. Default: only trueup.dev/test.
	NamespaceLabels map[string]string
}

// Env is the environment of a test.
type Env struct {
	*Sandbox

	// Namespace is the name of the test's own namespace.
	Namespace string

	namespaces corev1client.NamespaceInterface
	requests   *requestLog // nil unless the test logs them
}

// ForTest returns a control plane for t, with served CRDs and a new namespace. If that fails, it ends t.
//
// The first call starts the control plane; later calls with the same Options (Progress, LogOutput and StartTimeout
// aside) share it, also from parallel tests and from other test binaries of the user. It stops shortly after the
// last of these binaries has ended, in whatever way; tests do not stop it. With Private, Dir, Port or Verbosity it is
// used by this test binary only and stops with it. The namespace is named after the test. At the end of t its deletion
// is requested, and ForTest does not wait for it. If the controllers create a default service account, ForTest waits
// for it, so that pods can be created immediately.
//
// CRDs and other cluster-scoped objects are not deleted, and parallel tests share them. If another test binary uses a
// CRD of the same name with another content, ForTest continues as with Private.
func ForTest(t testing.TB, o TestOptions) *Env {
	t.Helper()
	if err := o.prepare(); err != nil {
		t.Fatal(err)
	}
	o.Private = o.Private || o.LogRequests
	s, err := sharedSandbox(t, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	err = s.InstallCRDs(ctx, o.CRDs...)
	if _, conflict := errors.AsType[*conflictError](err); conflict && !o.Private {
		t.Logf("this test uses another control plane: %v", err)
		o.Private = true
		return ForTest(t, o)
	}
	if err != nil {
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
	e := &Env{Sandbox: s, Namespace: namespace, namespaces: client.Namespaces()}
	t.Cleanup(func() { e.end(t) })
	if makesServiceAccounts(ctx, s, client, &o.Options) {
		if err := awaitServiceAccount(ctx, client, namespace); err != nil {
			t.Fatal(orDeath(s, fmt.Errorf("sandbox: waiting for the test's namespace %s: %w", namespace, err)))
		}
	}
	if o.LogRequests {
		if e.requests, err = newRequestLog(s.audit, namespace); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// makesServiceAccounts reports whether new namespaces get a default service account.
func makesServiceAccounts(ctx context.Context, s *Sandbox, client corev1client.CoreV1Interface, o *Options) bool {
	if _, existing := s.server.(*existingCluster); !existing {
		return o.runs(serviceAccountController)
	}
	// In an existing cluster, the namespace default has the account if namespaces get one at all.
	_, err := client.ServiceAccounts(metav1.NamespaceDefault).Get(ctx, defaultServiceAccount, metav1.GetOptions{})
	return err == nil
}

// runs reports whether a controller that runs by default runs with these options.
func (o *Options) runs(controller string) bool {
	changesDefault := !slices.ContainsFunc(o.Controllers, func(name string) bool {
		return !strings.HasPrefix(name, "+") && !strings.HasPrefix(name, "-")
	})
	selected := changesDefault || slices.Contains(o.Controllers, "*") ||
		slices.Contains(o.Controllers, controller) || slices.Contains(o.Controllers, "+"+controller)
	return selected && !slices.Contains(o.Controllers, "-"+controller)
}

// end deletes the test's namespace, or reports that the control plane has ended. Then it completes the log of the test.
func (e *Env) end(t testing.TB) {
	defer e.requests.write(t)
	if err := e.Err(); err != nil {
		t.Errorf("before the end of the test: %v", err)
		return
	}
	// The context of the test has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), namespaceTimeout)
	defer cancel()
	err := e.namespaces.Delete(ctx, e.Namespace, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(orDeath(e.Sandbox, fmt.Errorf("sandbox: deleting the test's namespace %s: %w", e.Namespace, err)))
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
func sharedSandbox(t testing.TB, o TestOptions) (*Sandbox, error) {
	shaping := o.Options
	shaping.Progress, shaping.LogOutput, shaping.StartTimeout = nil, nil, 0
	key := fmt.Sprintf("%t %t %#v", o.Private, o.LogRequests, shaping)
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

func startShared(t testing.TB, o TestOptions) (*Sandbox, error) {
	// Do not use the context of t, because other tests wait for this as well.
	ctx := context.Background()
	if limited, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, ok := limited.Deadline(); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadlineCause(ctx, deadline.Add(-deadlineMargin), errTestDeadline)
			defer cancel()
		}
	}
	open := openShared
	switch {
	case o.LogRequests:
		open = startLogging
	case o.Private:
		open = Start
	}
	s, err := open(ctx, o.Options)
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

const (
	suffixLength     = 5
	namespaceTimeout = 10 * time.Second
	// testLabel marks the namespaces of tests. In an existing cluster it identifies the namespaces of killed tests.
	testLabel = "trueup.dev/test"
	// defaultServiceAccount is the account of pods that do not set another.
	defaultServiceAccount = "default"
)

// namespacePrefix returns a readable prefix for a namespace from the name of a test: "TestA/b_c" becomes "testa-b-c-".
func namespacePrefix(test string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(test) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := b.String()
	if limit := validation.DNS1123LabelMaxLength - suffixLength - 1; len(name) > limit {
		name = name[:limit]
	}
	name = strings.TrimSuffix(name, "-")
	if name == "" {
		name = "test"
	}
	return name + "-"
}

// createNamespace creates a namespace for the named test.
func createNamespace(
	ctx context.Context, client corev1client.CoreV1Interface, test string, labels map[string]string,
) (string, error) {
	prefix := namespacePrefix(test)
	namespace := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{testLabel: strings.TrimSuffix(prefix, "-")}},
	}
	for key, value := range labels {
		namespace.Labels[key] = value
	}
	for {
		namespace.Name = prefix + rand.String(suffixLength)
		_, err := client.Namespaces().Create(ctx, namespace, metav1.CreateOptions{FieldManager: fieldManager})
		if !apierrors.IsAlreadyExists(err) {
			return namespace.Name, err
		}
	}
}

// awaitServiceAccount waits for the default service account of a new namespace. The API server rejects pods until a
// controller has created it.
func awaitServiceAccount(ctx context.Context, client corev1client.CoreV1Interface, namespace string) error {
	err := poll(ctx, func() (bool, error) {
		_, err := client.ServiceAccounts(namespace).Get(ctx, defaultServiceAccount, metav1.GetOptions{})
		return err == nil || !apierrors.IsNotFound(err), err
	})
	if err != nil {
		return fmt.Errorf("its service account %q: %w", defaultServiceAccount, err)
	}
	return nil
}
