// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"trueup.dev/console"
	databaseexample "trueup.dev/examples/database"
	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/backup"
	"trueup.dev/graph/rbac"
	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
	"trueup.dev/sandbox"
)

// tenants is the number of objects of a second controller.
const tenants = 10_000

// scene is a manager with a console that shows what an operator may find at night: the Databases of the example, one
// exceeds a quota, one is changed back and forth by another controller, and one lacks a Secret; and many healthy
// objects of another controller.
type scene struct {
	address  string // of the server of the console
	recorder *recorder.Recorder
	client   client.Client
}

func newScene(t *testing.T) *scene {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, databaseexample.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api, err := sandbox.Start(t.Context(), sandbox.Options{Backend: sandbox.Memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := api.InstallCRDs(t.Context(), databaseexample.CRDs()); err != nil {
		t.Fatal(err)
	}
	s := &scene{address: freeAddress(t), recorder: recorder.New(recorder.Options{})}
	if s.client, err = client.New(api.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	managed := api.RESTConfig()
	rules := sceneRules(t)
	managed.Wrap(func(next http.RoundTripper) http.RoundTripper { return quota{rulesReview{next, rules}} })
	mgr, err := ctrl.NewManager(managed, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
		Controller: config.Controller{SkipNameValidation: new(true), MaxConcurrentReconciles: 4},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := console.AddToManager(mgr, console.Options{Address: s.address, Recorder: s.recorder}); err != nil {
		t.Fatal(err)
	}
	options := databaseexample.Options{Backups: &backup.Fake{}}
	if err := databaseexample.SetupWithManager(t.Context(), mgr, options); err != nil {
		t.Fatal(err)
	}
	addAutoscaler(t, mgr)
	run(t, mgr)
	for _, name := range []string{"shop", "orders", "analytics", "reports", "billing"} {
		s.create(t, name)
	}
	for i := range tenants {
		s.reconcileTenant(fmt.Sprintf("tenant-%05d", i))
	}
	s.await(t)
	return s
}

// create creates a Database.
func (s *scene) create(t *testing.T, name string) {
	t.Helper()
	db := &databasev1.Database{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	db.Spec.Version, db.Spec.Storage, db.Spec.Replicas = 18, resource.MustParse("10Gi"), new(int32(2))
	db.Spec.Parameters = map[string]string{"max_connections": "200"}
	if name == "reports" {
		db.Spec.TLS = &databasev1.TLS{SecretName: "reports-tls"}
	}
	if err := s.client.Create(t.Context(), db); err != nil {
		t.Fatal(err)
	}
}

// touch changes a Database such that it is reconciled.
func (s *scene) touch(ctx context.Context, name string, value int) error {
	db := &databasev1.Database{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, value)
	return s.client.Patch(ctx, db, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// password returns the password of a Database, which the controller has written to a Secret.
func (s *scene) password(t *testing.T) string {
	t.Helper()
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: "default", Name: "shop-credentials"}
	if err := s.client.Get(t.Context(), key, &secret); err != nil {
		t.Fatal(err)
	}
	return string(secret.Data["password"])
}

// await waits until the recorder has each fault, and the healthy Databases are reconciled.
func (s *scene) await(t *testing.T) {
	t.Helper()
	want := map[string]recorder.State{
		"orders": recorder.StateFailing, "analytics": recorder.StateLooping, "shop": recorder.StateSucceeded,
		"billing": recorder.StateSucceeded,
	}
	eventually(t, "http://"+s.address+"/console/?kind=Database", "application/json", "", func(int, string) bool {
		objects, _ := s.recorder.Objects(recorder.Query{Kind: "Database"})
		got := map[string]recorder.State{}
		for _, o := range objects {
			if o.Object.Name != "shop" && o.Object.Name != "billing" || o.LastOutcome == recorder.NoOp {
				got[o.Object.Name] = o.State
			}
		}
		for name, state := range want {
			if got[name] != state {
				return false
			}
		}
		return true
	})
}

// reconcileTenant records a reconcile without a change.
func (s *scene) reconcileTenant(name string) {
	started := time.Now()
	run := &observe.Run{
		ID: "reconcile-of-" + name, Controller: "tenant", Started: started,
		Kind:   schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Tenant"},
		Object: types.NamespacedName{Namespace: "tenants", Name: name},
		Causes: []observe.Cause{{Type: observe.CauseResync, At: started, Count: 1}},
	}
	path := []string{"Tenant"}
	for _, e := range []observe.Event{
		&observe.ReconcileStarted{Run: run},
		&observe.StepStarted{Run: run, Path: path},
		&observe.StepFinished{Run: run, Path: path, Outcome: observe.Succeeded, Duration: 120 * time.Microsecond},
		&observe.ReconcileFinished{Run: run, Duration: 150 * time.Microsecond},
	} {
		s.recorder.Observe(nil, e) //nolint:staticcheck // the recorder ignores the context
	}
}

// addAutoscaler adds a controller that changes what the controller of Databases writes.
func addAutoscaler(t *testing.T, mgr ctrl.Manager) {
	t.Helper()
	c := mgr.GetClient() // the Database is in a loop with it
	reconcileStatefulSet := reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		var set appsv1.StatefulSet
		if err := c.Get(ctx, r.NamespacedName, &set); err != nil || !strings.HasPrefix(set.Name, "analytics") {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if *set.Spec.Replicas == 3 {
			return reconcile.Result{}, nil
		}
		// Not an update, which fails with a conflict if the cache is late: that is one object more in trouble.
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`))
		return reconcile.Result{}, c.Patch(ctx, &set, patch, client.FieldOwner("autoscaler"))
	})
	bldr := ctrl.NewControllerManagedBy(mgr).For(&appsv1.StatefulSet{}).Named("autoscaler").
		WithOptions(controller.Options{SkipNameValidation: new(true)})
	if err := observe.Controller(bldr).Complete(reconcileStatefulSet); err != nil {
		t.Fatal(err)
	}
}

// sceneRules returns the role of the example without a permission that it needs, and with one that it does not need.
func sceneRules(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	manifest, err := fs.ReadFile(databaseexample.RBAC(), "role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.Unmarshal(manifest, &role); err != nil {
		t.Fatal(err)
	}
	granted := rbac.FromRules(role.Rules)
	delete(granted, rbac.Permission{Group: "apps", Resource: "statefulsets", Verb: "update"})
	for _, verb := range []string{"list", "watch"} {
		granted[rbac.Permission{Group: "networking.k8s.io", Resource: "ingresses", Verb: verb}] = true
	}
	return granted.Rules()
}

// rulesReview answers what the rules of the program are. The API in memory grants everything.
type rulesReview struct {
	next  http.RoundTripper
	rules []rbacv1.PolicyRule
}

func (r rulesReview) RoundTrip(request *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(request.URL.Path, "/selfsubjectrulesreviews") {
		return r.next.RoundTrip(request)
	}
	review := authorizationv1.SelfSubjectRulesReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectRulesReview"},
	}
	for _, rule := range r.rules {
		review.Status.ResourceRules = append(review.Status.ResourceRules, authorizationv1.ResourceRule{
			Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources,
		})
	}
	body, err := json.Marshal(review)
	return answer(request, http.StatusCreated, body), err
}

// answer returns a response of an API server.
func answer(request *http.Request, status int, body []byte) *http.Response {
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status, Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body)), Request: request,
	}
}

// quota refuses the Services of one Database, as the admission of an API server does.
type quota struct{ next http.RoundTripper }

func (q quota) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodPost || !strings.HasSuffix(request.URL.Path, "/services") {
		return q.next.RoundTrip(request)
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	if !bytes.Contains(body, []byte("orders")) {
		return q.next.RoundTrip(request)
	}
	const refusal = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":` +
		`"services \"orders-pods\" is forbidden: exceeded quota: team, requested: services=1, used: services=8, limited: services=8"}`
	return answer(request, http.StatusForbidden, []byte(refusal)), nil
}
