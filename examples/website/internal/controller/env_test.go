// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/yaml"

	"trueup.dev/examples/website"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
	"trueup.dev/graph/rbac"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/sandbox"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// env is a namespace of a real Kubernetes API, with a controller that sees only that namespace and has only the
// permissions of its role.
type env struct {
	*apitest.Env
	records *recordBook
	recheck time.Duration
	writes  atomic.Int64 // by the controller, without events
	// requests records the permissions that the controller uses.
	requests rbac.Recorder
}

// recordBook counts reconciles: every reconcile that reaches its end publishes.
type recordBook struct {
	dns.Provider
	published atomic.Int64
	broken    atomic.Bool
}

var errBroken = errors.New("the record book is stuck")

func (b *recordBook) Publish(ctx context.Context, record dns.Record) error {
	defer b.published.Add(1)
	if b.broken.Load() {
		return errBroken
	}
	return b.Provider.Publish(ctx, record)
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), website.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	e := &env{
		Env:     apitest.New(t, newScheme(t), sandbox.TestOptions{CRDs: []any{website.CRDs()}}),
		records: &recordBook{Provider: dns.NewDirectory(t.TempDir())},
	}
	e.grant()
	e.ReleaseAtEnd(&websitev1.WebsiteList{})
	return e
}

// user is the name of the user that the controller of this test has.
func (e *env) user() string { return "website-manager-of-" + e.Namespace }

// grant gives the user the permissions of the ClusterRole in the namespace of the test.
func (e *env) grant() {
	e.Helper()
	role := readRole(e)
	err := client.IgnoreAlreadyExists(e.Create(e.Context(), role))
	if err == nil {
		err = e.Create(e.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "website-manager"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: e.user()}},
		})
	}
	if err != nil {
		e.Fatal(err)
	}
}

func readRole(t testing.TB) *rbacv1.ClusterRole {
	t.Helper()
	role := &rbacv1.ClusterRole{}
	manifest, err := fs.ReadFile(website.RBAC(), "role.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(manifest, role)
	}
	if err != nil {
		t.Fatal(err)
	}
	return role
}

// startController starts the controller. It stops with the test, or earlier when the returned function is called.
func (e *env) startController() (stop func()) {
	e.Helper()
	cfg := e.RESTConfig()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: e.user(), Groups: []string{"system:authenticated"}}
	cfg.Wrap(e.countWrites)
	cfg.Wrap(e.requests.Wrap)
	options := ctrl.Options{Controller: config.Controller{MaxConcurrentReconciles: 4}}
	return e.Manager(cfg, options, func(ctx context.Context, mgr ctrl.Manager) error {
		return website.SetupWithManager(ctx, mgr, website.Options{Records: e.records, Recheck: e.recheck})
	})
}

func (e *env) countWrites(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method != http.MethodGet && !strings.HasSuffix(request.URL.Path, "/events") {
			e.writes.Add(1)
		}
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func change[T client.Object](e *env, object T, apply func(T)) {
	e.Helper()
	apitest.Change(e.Env, object, apply)
}

// get reads an object of the namespace by name. The error is nil if it exists.
func (e *env) get(object client.Object, name string) error {
	return e.Get(e.Context(), client.ObjectKey{Namespace: e.Namespace, Name: name}, object)
}

func (e *env) configMap(name string) *corev1.ConfigMap {
	e.Helper()
	var configMap corev1.ConfigMap
	e.Must(e.get(&configMap, name))
	return &configMap
}

func (e *env) deployment(name string) *appsv1.Deployment {
	e.Helper()
	var deployment appsv1.Deployment
	e.Must(e.get(&deployment, name))
	return &deployment
}

// ready waits until a site is ready with its current generation, and returns it.
func (e *env) ready(name string) *websitev1.Website {
	e.Helper()
	return e.condition(name, websitev1.ConditionReady, metav1.ConditionTrue, "Ready")
}

// condition waits until a site has a condition at its current generation, and returns the site.
func (e *env) condition(name, condition string, status metav1.ConditionStatus, reason string) *websitev1.Website {
	e.Helper()
	var site websitev1.Website
	e.Eventually(func() error {
		if err := e.get(&site, name); err != nil {
			return err
		}
		got := site.Status.GetCondition(condition)
		if site.Status.ObservedGeneration != site.Generation || got == nil || got.Status != status || got.Reason != reason {
			return fmt.Errorf(
				"%s: %s is not %s with reason %s: generation %d, status %+v", name, condition, status, reason, site.Generation,
				site.Status,
			)
		}
		return nil
	})
	return &site
}

// waitForDeletion waits until an object no longer exists.
func (e *env) waitForDeletion(object client.Object, name string) {
	e.Helper()
	e.Eventually(func() error {
		err := e.get(object, name)
		if err == nil {
			return fmt.Errorf("%T %s still exists", object, name)
		}
		return client.IgnoreNotFound(err)
	})
}

func newSite(name string) *websitev1.Website {
	return &websitev1.Website{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: websitev1.WebsiteSpec{
			Domain: name + ".example.com",
			Pages:  []websitev1.Page{{Name: "index", Title: "Welcome", Body: "Come in."}},
		},
	}
}

func newTheme(name, style string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Data:       map[string]string{"style.css": style, "layout.html": "<h1>{{.Title}}</h1>"},
	}
}
