// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/observe"
)

// Which cache does a manager wait for that starts no controller at all, because an informer was registered before its
// start? In its own cache, and in the cache of another cluster that was added with mgr.Add.
func TestWhichCacheBlocksAllControllers(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until a wait for a cache is reported")
	}
	for name, tc := range map[string]struct {
		other bool
		want  string
	}{
		"an index of the manager": {want: `cannot list resource "secrets"`},
		"an index of the cluster": {other: true, want: "mgr.Add(manager.RunnableFunc(cluster.Start))"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			user := e.User(t, e.Namespace+"-controller")
			allow(e, "configmaps")
			waits, runs := make(chan observe.CacheWait, 100), make(chan string, 100)
			stop := e.Manager(user.RESTConfig(), ctrl.Options{}, func(ctx context.Context, mgr ctrl.Manager) error {
				observe.Of(mgr).Add(observe.Func(func(_ context.Context, event observe.Event) {
					if wait, ok := event.(*observe.CacheWait); ok {
						waits <- *wait
					}
				}))
				bldr, indexer := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Named("plain"), mgr.GetFieldIndexer()
				if tc.other {
					edge, err := cluster.New(user.RESTConfig(), func(o *cluster.Options) {
						o.Scheme = mgr.GetScheme()
						o.Cache.DefaultNamespaces = map[string]cache.Config{e.Namespace: {}}
					})
					if err != nil {
						return err
					}
					if err := mgr.Add(edge); err != nil {
						return err
					}
					bldr.WatchesRawSource(
						source.Kind[client.Object](edge.GetCache(), &corev1.Secret{}, &handler.EnqueueRequestForObject{}),
					)
					indexer = edge.GetFieldIndexer()
				}
				return errors.Join(
					indexer.IndexField(ctx, &corev1.Secret{}, "kind", func(obj client.Object) []string {
						return []string{string(obj.(*corev1.Secret).Type)}
					}),
					observe.Controller(bldr).Complete(reconcile.Func(
						func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
							runs <- req.Name
							return reconcile.Result{}, nil
						},
					)),
				)
			})
			defer stop()
			defer allow(e, "secrets") // or the manager cannot stop
			wait := <-waits
			if wait.Controller != "plain" || wait.Kind.Kind != "Secret" || wait.Ended ||
				!strings.Contains(wait.String(), tc.want) {
				t.Errorf("got the wait of %q: %v, want one of plain for Secret: %s", wait.Controller, &wait, tc.want)
			}
			select {
			case <-runs:
				t.Error("a controller runs while the manager waits")
			default:
			}
			allow(e, "secrets")
			e.Add(newConfigMap("it", nil))
			deadline := time.After(time.Minute)
			for ended, ran := false, false; !ended || !ran; {
				select {
				case wait := <-waits:
					ended = ended || wait.Ended
				case name := <-runs:
					ran = ran || name == "it"
				case <-deadline:
					t.Fatalf("the wait has ended: %t, the controller runs: %t", ended, ran)
				}
			}
		})
	}
}

// allow permits the user of the controller to read the objects of a kind in the namespace of the test.
func allow(e *env, resource string) {
	e.Helper()
	meta := metav1.ObjectMeta{Name: resource, Namespace: e.Namespace}
	for _, object := range []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get", "list", "watch"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: resource},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: e.Namespace + "-controller"}},
		},
	} {
		if err := e.Create(context.Background(), object); err != nil && !apierrs.IsAlreadyExists(err) {
			e.Fatal(err)
		}
	}
}
