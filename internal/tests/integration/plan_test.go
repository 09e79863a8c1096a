// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/plan"
	"trueup.dev/reconcilers"
)

// planned is the set-up function of controllers.
func planned(setups ...setup) plan.SetUp {
	return func(ctx context.Context, mgr ctrl.Manager) error {
		for _, setup := range setups {
			if err := setup(ctx, mgr, reconcilers.NewConfig(mgr, nil, 0)); err != nil {
				return err
			}
		}
		return nil
	}
}

// writesNothing returns a client that records requests which would write.
func (e *env) writesNothing(config *rest.Config) client.Client {
	e.Helper()
	var mu sync.Mutex
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet && !isDryRun(r) {
				mu.Lock()
				defer mu.Unlock()
				e.Errorf("%s %s was sent", r.Method, r.URL)
			}
			return inner.RoundTrip(r)
		})
	})
	c, err := client.New(config, client.Options{Scheme: e.Scheme()})
	e.Must(err)
	return c
}

// isDryRun reports whether a request is a dry run. The option of a deletion is in its body.
func isDryRun(r *http.Request) bool {
	if r.Method != http.MethodDelete {
		return r.URL.Query().Get("dryRun") == metav1.DryRunAll
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil && bytes.Contains(body, []byte(metav1.DryRunAll))
}

// state has the versions of all objects.
func (e *env) state() map[string]string {
	e.Helper()
	versions := map[string]string{}
	for _, list := range []client.ObjectList{&fixture.ResourceList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}} {
		e.Must(e.List(e.Context(), list, client.InNamespace(e.Namespace)))
		e.Must(eachItem(list, func(obj client.Object) {
			if obj.GetName() == "kube-root-ca.crt" { // the control plane creates it some time after the namespace
				return
			}
			versions[fmt.Sprintf("%T %s", obj, obj.GetName())] = obj.GetResourceVersion()
		}))
	}
	return versions
}

// plan plans the request "parent" of the only controller.
func (e *env) plan(cluster client.Client, setUp plan.SetUp) *plan.Plan {
	e.Helper()
	made, err := plan.Run(e.Context(), cluster, setUp, plan.Request{Namespace: e.Namespace, Name: "parent"})
	e.Must(err)
	return made
}

// text is the text of a plan, without names and UIDs that differ from run to run.
func (e *env) text(p *plan.Plan, parents ...client.Object) string {
	text := strings.ReplaceAll(p.Text(), e.Namespace, "NS")
	for _, parent := range parents {
		text = strings.ReplaceAll(text, string(parent.GetUID()), "UID")
	}
	return text
}

// A reconciler of this module, whose objects the API server defaults. What the plan shows happens then, and nothing
// else is left to plan.
func TestPlan(t *testing.T) {
	e := newEnv(t)
	cluster := e.writesNothing(e.RESTConfig())
	parent := newResource("parent", map[string]string{"a": "1"})
	parent.Namespace = e.Namespace
	e.Add(parent)
	before := e.state()
	setUp := pruning(owned(), secret())
	want := `~ Resource NS/parent
    metadata.annotations[integration.trueup.dev/inventory] = "{\"kinds\":[\"ConfigMap\",\"Secret\"]}"
    status.observedGeneration: 0 → 1
    status.conditions[Ready]: added, status Unknown, reason Initializing
+ ConfigMap NS/parent
    metadata.labels[integration.trueup.dev/inventory] = "UID"
    metadata.annotations[integration.trueup.dev/inventory] = "ConfigMap/NS/parent/UID/owned"
    data[Defaulter] = "ran"
    data[a] = "1"
+ Secret NS/parent
    metadata.labels[integration.trueup.dev/inventory] = •••
    metadata.annotations[integration.trueup.dev/inventory] = •••
event of Resource NS/parent: Normal Created: Created ConfigMap "parent"
event of Resource NS/parent: Normal Created: Created Secret "parent"
Plan: 2 to create, 1 to update, nothing to delete.
`
	if diff := cmp.Diff(want, e.text(e.plan(cluster, planned(setUp)), parent)); diff != "" {
		t.Errorf("first plan (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, e.state()); diff != "" {
		t.Errorf("the plan changed the cluster (-want +got):\n%s", diff)
	}

	stop := e.start(setUp)
	until(e, parent, func(p *fixture.Resource) error {
		return different("observed generation", 1, p.Status.ObservedGeneration)
	})
	stop()
	if diff := cmp.Diff("No changes.\n", e.text(e.plan(cluster, planned(setUp)))); diff != "" {
		t.Errorf("plan afterwards (-want +got):\n%s", diff)
	}
	// A release without the Secret prunes it.
	want = `- Secret NS/parent
event of Resource NS/parent: Normal Deleted: Deleted Secret "parent"
Plan: 1 to delete. The next reconcile is due after 1m0s.
`
	if diff := cmp.Diff(want, e.text(e.plan(cluster, planned(pruning(owned()))), parent)); diff != "" {
		t.Errorf("plan of the next release (-want +got):\n%s", diff)
	}
}

// A plain controller of controller-runtime.
type plain struct{ client.Client }

func (r *plain) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	parent := &fixture.Resource{}
	if err := r.Get(ctx, request.NamespacedName, parent); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	child := newConfigMap(parent.Name, nil)
	child.Namespace = parent.Namespace
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		child.Data = parent.Spec.Fields
		return controllerutil.SetControllerReference(parent, child, r.Scheme())
	}); err != nil {
		return reconcile.Result{}, err
	}
	if parent.Spec.Fields["delete"] != "" {
		err := r.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: parent.Namespace, Name: parent.Spec.Fields["delete"],
		}})
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return reconcile.Result{}, nil
}

func plainSetUp(_ context.Context, mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&fixture.Resource{}).Owns(&corev1.ConfigMap{}).
		Complete(&plain{mgr.GetClient()})
}

func TestPlan_Plain(t *testing.T) {
	e := newEnv(t)
	cluster := e.writesNothing(e.RESTConfig())
	parent := newResource("parent", map[string]string{"a": "1", "delete": "old"})
	parent.Namespace = e.Namespace
	old := newConfigMap("old", nil)
	old.Namespace = e.Namespace
	e.Add(parent, old)
	dependent := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "dependent"}}
	e.Must(controllerutil.SetOwnerReference(old, dependent, e.Scheme()))
	e.Add(dependent)
	before := e.state()
	want := `+ ConfigMap NS/parent
    data[a] = "1"
    data[delete] = "old"
- ConfigMap NS/old
- Secret NS/dependent (by the garbage collector)
Plan: 1 to create, 2 to delete.
`
	if diff := cmp.Diff(want, e.text(e.plan(cluster, plainSetUp), parent)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, e.state()); diff != "" {
		t.Errorf("the plan changed the cluster (-want +got):\n%s", diff)
	}
}

func eachItem(list client.ObjectList, each func(client.Object)) error {
	return meta.EachListItem(list, func(item runtime.Object) error {
		each(item.(client.Object))
		return nil
	})
}

// A user without the permission to write: the plan has no dry runs, says so, and is otherwise the same.
func TestPlan_WithoutPermissions(t *testing.T) {
	e := newEnv(t)
	name := "planner-" + e.Namespace
	user := e.User(t, name)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}},
		{
			APIGroups: []string{fixture.GroupVersion.Group}, Resources: []string{"resources"},
			Verbs: []string{"get", "list", "watch"},
		},
	}}
	e.Must(e.Create(e.Context(), role))
	e.Cleanup(func() { e.Must(e.Delete(context.Background(), role)) })
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "planner"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}
	parent := newResource("parent", map[string]string{"a": "1", "delete": "old"})
	parent.Namespace = e.Namespace
	old := newConfigMap("old", nil)
	old.Namespace = e.Namespace
	e.Add(parent, old, binding)
	cluster := e.writesNothing(user.RESTConfig())
	e.Eventually(func() error {
		return cluster.List(e.Context(), &fixture.ResourceList{}, client.InNamespace(e.Namespace))
	})
	before := e.state()
	want := `+ ConfigMap NS/parent
    data[a] = "1"
    data[delete] = "old"
- ConfigMap NS/old
? unknown: whether the namespace exists: reading Namespaces is forbidden
? unknown: what the API server would change or refuse for create ConfigMap: the dry run is forbidden
? unknown: what the API server would change or refuse for delete ConfigMap: the dry run is forbidden
? unknown: what garbage collection deletes of 28 kinds, because listing them is forbidden: ` +
		`Endpoints, LimitRange, PersistentVolumeClaim, Pod, PodTemplate, …
Plan: 1 to create, 1 to delete.
`
	if diff := cmp.Diff(want, e.text(e.plan(cluster, plainSetUp), parent)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, e.state()); diff != "" {
		t.Errorf("the plan changed the cluster (-want +got):\n%s", diff)
	}
}

// Are parallel plans of reconcilers of this module the same as plans one after the other?
func TestPlan_Parallel(t *testing.T) {
	e := newEnv(t)
	cluster := e.writesNothing(e.RESTConfig())
	for i := range 12 {
		parent := newResource(fmt.Sprintf("parent-%02d", i), map[string]string{"a": "1"})
		parent.Namespace = e.Namespace
		e.Add(parent)
	}
	texts := func(parallel int) (texts []string) {
		planner, err := plan.New(e.Context(), cluster, planned(pruning(owned(), secret())), plan.Options{Parallel: parallel})
		e.Must(err)
		defer planner.Close()
		selection := plan.Selection{Namespace: e.Namespace, Kind: fixture.GroupVersion.WithKind("Resource")}
		e.Must(planner.Each(e.Context(), selection, func(p *plan.Plan) error {
			texts = append(texts, fmt.Sprintf("%v\n%s", p.Requests, p.Text()))
			return nil
		}))
		return texts
	}
	if diff := cmp.Diff(texts(1), texts(4)); diff != "" {
		t.Errorf("parallel plans (-one after the other +got):\n%s", diff)
	}
}
