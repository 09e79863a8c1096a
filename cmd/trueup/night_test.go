// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"trueup.dev/console"
	"trueup.dev/examples/database"
	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/backup"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
	"trueup.dev/reconcilers"
	"trueup.dev/sandbox"
)

// night is a namespace in which the controller of examples/database runs with a console, and one fault.
type night struct {
	*apitest.Env
	backups  backup.System
	recorder *recorder.Recorder
	console  *httptest.Server
	role     *rbacv1.ClusterRole
	// program replaces the reconcilers of examples/database, if it is set.
	program reconcilers.SubReconciler[*databasev1.Database]
}

func newNight(t *testing.T) *night {
	scheme := runtime.NewScheme()
	n := &night{
		Env:      apitest.New(t, scheme, sandbox.TestOptions{CRDs: []any{database.CRDs()}}),
		backups:  &backup.Fake{},
		recorder: recorder.New(recorder.Options{}),
		role:     &rbacv1.ClusterRole{},
	}
	n.Must(errors.Join(clientgoscheme.AddToScheme(scheme), database.AddToScheme(scheme)))
	n.console = httptest.NewServer(console.Handler(n.recorder))
	t.Cleanup(n.console.Close)
	n.ReleaseAtEnd(&databasev1.DatabaseList{})
	manifest, err := fs.ReadFile(database.RBAC(), "role.yaml")
	n.Must(err)
	n.Must(yaml.UnmarshalStrict(manifest, n.role))
	n.role.Name = "database-manager-of-" + n.Namespace
	return n
}

// start starts the controller, with the permissions of its role.
func (n *night) start() {
	n.Must(n.Create(n.Context(), n.role))
	n.Cleanup(func() { n.Must(n.Delete(context.Background(), n.role)) })
	n.Add(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "database-manager"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: n.role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: n.role.Name}},
	})
	cfg := n.RESTConfig()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: n.role.Name, Groups: []string{"system:authenticated"}}
	n.Manager(cfg, ctrl.Options{}, func(ctx context.Context, mgr ctrl.Manager) error {
		observe.Of(mgr).Add(n.recorder)
		if n.program != nil {
			return (&reconcilers.ResourceReconciler[*databasev1.Database]{
				Name: "Database", Reconciler: n.program,
				Config: reconcilers.NewConfig(mgr, &databasev1.Database{}, 10*time.Hour),
			}).SetupWithManager(ctx, mgr)
		}
		return database.SetupWithManager(ctx, mgr, database.Options{Backups: n.backups, Poll: time.Second})
	})
}

// slow is a backup system that does not answer.
type slow struct{ backup.System }

func (slow) Take(ctx context.Context, _ backup.Request) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

// refusing is a backup system that refuses.
type refusing struct{ backup.System }

func (refusing) Take(context.Context, backup.Request) (bool, error) {
	return false, errors.New("backup.example.com: 507 Insufficient Storage")
}

// rewrite registers a webhook that writes another value into each ConfigMap each time.
func (n *night) rewrite() {
	written := atomic.Int64{}
	n.mutate(corev1.GroupName, "configmaps", func(admission.Request) admission.Response {
		value := fmt.Sprint("# ", written.Add(1))
		return admission.Patched("", jsonpatch.NewOperation("add", "/data/"+configurationKey, value))
	})
}

// keepImage registers a webhook that keeps the image of each StatefulSet.
func (n *night) keepImage() {
	n.mutate(appsv1.GroupName, "statefulsets", func(r admission.Request) admission.Response {
		old := appsv1.StatefulSet{}
		if r.Operation != admissionv1.Update {
			return admission.Allowed("")
		}
		if err := json.Unmarshal(r.OldObject.Raw, &old); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		return admission.Patched("", jsonpatch.NewOperation(
			"replace", "/spec/template/spec/containers/0/image", old.Spec.Template.Spec.Containers[0].Image))
	})
}

// mutate registers a webhook that changes each object of a resource.
func (n *night) mutate(group, resource string, handle func(admission.Request) admission.Response) {
	const path = "/mutate"
	hooks := n.Webhooks(n.TB, sandbox.WebhookOptions{Configurations: []any{
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "mutate"},
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name:                    "mutate.example.com",
				AdmissionReviewVersions: []string{"v1"},
				SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
				ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: new("https://localhost" + path)},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource},
					},
				}},
			}},
		},
	}})
	server := hooks.Server()
	server.Register(path, &admission.Webhook{Handler: admission.HandlerFunc(
		func(_ context.Context, r admission.Request) admission.Response { return handle(r) },
	)})
	n.Go("the webhook server", server.Start)
	n.Must(hooks.WaitUntilServed(n.Context()))
}

// revert lets another client set the data of the ConfigMap back to its own each time.
func (n *night) revert() {
	n.Go("another client", func(ctx context.Context) error {
		for ctx.Err() == nil {
			configuration := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: "shop-config"}}
			content := fmt.Sprintf(`{"data":{%q:"# managed by hand"}}`, configurationKey)
			patch := client.RawPatch(types.MergePatchType, []byte(content))
			err := n.Patch(ctx, configuration, patch, client.FieldOwner("by-hand"))
			if client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
				return err
			}
		}
		return nil
	})
}

const configurationKey = "postgresql.conf"

// allowNoServers creates a quota that allows no StatefulSets.
func (n *night) allowNoServers() { n.AddQuota("small", "count/statefulsets.apps", "0") }

// forbid removes permissions for StatefulSets from the role.
func (n *night) forbid(verbs ...string) {
	for i, rule := range n.role.Rules {
		if slices.Contains(rule.Resources, "statefulsets") {
			n.role.Rules[i].Verbs = slices.DeleteFunc(rule.Verbs, func(v string) bool { return slices.Contains(verbs, v) })
		}
	}
}

// unreachable registers a webhook that no server serves, for the StatefulSets of the namespace.
func (n *night) unreachable() {
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "unreachable-" + n.Namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "unreachable.example.com",
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
			NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{corev1.LabelMetadataName: n.Namespace},
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"statefulsets"},
				},
			}},
		}},
	}
	n.Must(n.Create(n.Context(), hook))
	n.Cleanup(func() { n.Must(n.Delete(context.Background(), hook)) })
}

// text is a reconciler of a ConfigMap with the version of a Database.
func text(merge func(current, desired *corev1.ConfigMap)) reconcilers.SubReconciler[*databasev1.Database] {
	return &reconcilers.ChildReconciler[*databasev1.Database, *corev1.ConfigMap, *corev1.ConfigMapList]{
		Name: "Text",
		DesiredChild: func(_ context.Context, db *databasev1.Database) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: db.Namespace, Name: db.Name + "-text"},
				Data:       map[string]string{"image": db.Spec.Image},
			}, nil
		},
		MergeBeforeUpdate:          merge,
		ReflectChildStatusOnParent: func(context.Context, *databasev1.Database, *corev1.ConfigMap, error) {},
	}
}

// doing is a reconciler with a function.
func doing(
	name string, f func(ctx context.Context, db *databasev1.Database) error,
) reconcilers.SubReconciler[*databasev1.Database] {
	return &reconcilers.SyncReconciler[*databasev1.Database]{Name: name, Sync: f}
}

// withBackup configures backups.
func withBackup(db *databasev1.Database) {
	db.Spec.Backup = &databasev1.Backup{Schedule: "0 3 * * *", Image: "registry.example.com/pg-backup:1"}
}

// setImage changes the spec.
func (n *night) setImage(db *databasev1.Database) {
	apitest.Change(n.Env, db, func(db *databasev1.Database) { db.Spec.Image = "registry.example.com/pg:2" })
}

// remove deletes a Database that is ready.
func (n *night) remove(db *databasev1.Database) {
	n.isReady(db)
	n.Must(n.Delete(n.Context(), db))
}

// isReady waits until a Database is ready.
func (n *night) isReady(db *databasev1.Database) {
	apitest.Until(n.Env, db, func(db *databasev1.Database) error {
		if c := db.Status.GetCondition(databasev1.ConditionReady); c == nil || c.Status != metav1.ConditionTrue {
			return fmt.Errorf("not ready: %+v", db.Status)
		}
		return nil
	})
}

// TestWhatIsWrongAtNight plants a fault, and asks "trueup why" about the Database that does not become ready.
func TestWhatIsWrongAtNight(t *testing.T) {
	for name, tc := range map[string]struct {
		plant  func(*night)
		change func(*databasev1.Database)
		then   func(*night, *databasev1.Database)
		want   []string
	}{
		"a missing permission": {
			plant: func(n *night) { n.forbid("create") },
			want: []string{
				"  Failing  ", "failed in step Database.WithFinalizer.6.StatefulSet",
				`cannot create resource "statefulsets" in API group "apps"`, "next run: retry with back-off",
			},
		},
		"an exceeded quota": {
			plant: (*night).allowNoServers,
			want: []string{
				"  Failing  ", "failed in step Database.WithFinalizer.6.StatefulSet",
				`statefulsets.apps "shop" is forbidden: exceeded quota: small`, "create StatefulSet NAMESPACE/shop",
			},
		},
		"a missing secret": {
			change: func(db *databasev1.Database) { db.Spec.TLS = &databasev1.TLS{SecretName: "shop-tls"} },
			want: []string{
				"  Halted  ", "halted in step Database.WithFinalizer.1.Certificate", `Secret "shop-tls" not found`,
				"status.conditions[Ready]: added, status False, reason SecretNotFound",
			},
		},
		"another client that reverts a change": {
			plant: (*night).revert,
			want: []string{
				"  Looping  ", "data[postgresql.conf] of ConfigMap NAMESPACE/shop-config changed back and forth",
				"in step Database.WithFinalizer.2.Configuration", `"by-hand" (Update) writes a string`,
			},
		},
		"a webhook that rewrites each write": { // what a webhook stores is not written again
			plant: (*night).rewrite,
			then:  (*night).isReady,
			want:  []string{"  Succeeded  ", "next run: on the next event"},
		},
		"a slow external system": {
			plant:  func(n *night) { n.backups = slow{&backup.Fake{}} },
			change: withBackup,
			then:   (*night).remove,
			want: []string{
				"  Running  ", "running for ", " in step Database.WithFinalizer.0.FinalBackup\n", "metadata.deletionTimestamp",
				"step     Database.WithFinalizer.0.FinalBackup  not finished\n",
			},
		},
		"another object that keeps the worker": {
			plant: func(n *night) { n.backups = slow{&backup.Fake{}} },
			then: func(n *night, db *databasev1.Database) {
				n.isReady(db)
				other := newDatabase("other")
				withBackup(other)
				n.Add(other)
				n.remove(other)
				n.setImage(db)
			},
			want: []string{
				"waits for a worker: all of controller Database (MaxConcurrentReconciles: 1) are busy:\n",
				"Database NAMESPACE/other has been running for ", "in step Database.WithFinalizer.0.FinalBackup",
			},
		},
		"an external system that refuses the deletion": {
			plant:  func(n *night) { n.backups = refusing{&backup.Fake{}} },
			change: withBackup,
			then:   (*night).remove,
			want: []string{
				"  Failing  ", "failed in step Database.WithFinalizer.0.FinalBackup", "507 Insufficient Storage",
				"Ready is False: FinalBackupFailed",
			},
		},
		"a role without list and watch": {
			plant: func(n *night) { n.forbid("list", "watch") },
			want: []string{
				"controller Database has not started: it waits for the cache of StatefulSet.apps: ",
				`cannot list resource "statefulsets" in API group "apps"`,
			},
		},
		"a webhook that is down": {
			plant: (*night).unreachable,
			want: []string{
				"  Failing  ", "failed in step Database.WithFinalizer.6.StatefulSet",
				`failed calling webhook "unreachable.example.com"`, "connection refused",
			},
		},
		"a name that is taken": {
			plant: func(n *night) {
				n.Add(&corev1.Service{
					ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
				})
			},
			want: []string{
				"  Failing  ", "failed in step Database.WithFinalizer.5.Service", `services "shop" already exists; ` +
					`the existing object has no controller, and was first written by `,
			},
		},
		"an invalid child": {
			change: func(db *databasev1.Database) {
				withBackup(db)
				db.Spec.Backup.Schedule = "at night"
			},
			want: []string{
				"  Failing  ", "failed in step Database.WithFinalizer.7.1.Schedule", `spec.schedule: Invalid value: "at night"`,
			},
		},
		"a secret without its keys": {
			plant:  func(n *night) { n.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "shop-tls"}}) },
			change: func(db *databasev1.Database) { db.Spec.TLS = &databasev1.TLS{SecretName: "shop-tls"} },
			want: []string{
				"  Halted  ", "halted in step Database.WithFinalizer.1.Certificate\n",
				`Ready is False: SecretIncomplete: Secret "shop-tls" must have the keys tls.crt and tls.key`,
			},
		},
		"a webhook that keeps the old value": {
			plant: (*night).keepImage,
			then: func(n *night, db *databasev1.Database) {
				n.isReady(db)
				n.setImage(db)
			},
			want: []string{ // it fails, and is a loop after some attempts
				"Ready is False: FieldsKept: ", "step     Database.WithFinalizer.6.StatefulSet",
				"the API server accepted the update of StatefulSet NAMESPACE/shop and kept the old values, " +
					"a webhook may do this: spec.template.spec.containers[server].image",
			},
		},
		"servers that do not start": {
			plant: func(n *night) { n.AddQuota("no-pods", corev1.ResourcePods, "0") },
			want:  []string{"Ready is Unknown: RollingOut: waiting for servers with the current specification"},
		},
		"a step that panics": {
			plant: func(n *night) {
				n.program = doing("Broken", func(_ context.Context, db *databasev1.Database) error {
					db.Labels["map"] = "nil"
					return nil
				})
			},
			want: []string{
				"  Panicked  ", "failed in step Database.Broken",
				"panic: assignment to entry in nil map (in trueup.TestWhatIsWrongAtNight.",
				"night_test.go:",
			},
		},
		"a merge that forgets a field": {
			plant: func(n *night) { n.program = text(func(_, _ *corev1.ConfigMap) {}) },
			then: func(n *night, db *databasev1.Database) {
				child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shop-text"}}
				n.Eventually(func() error { return n.Read(child) })
				n.setImage(db)
			},
			want: []string{
				"a mistake in step Database.Text: MergeBeforeUpdate does not copy data[image] to the existing " +
					"ConfigMap NAMESPACE/shop-text",
			},
		},
		"a missing watch": {
			plant: func(n *night) {
				n.program = doing("License", func(ctx context.Context, db *databasev1.Database) error {
					key := types.NamespacedName{Namespace: db.Namespace, Name: "license"}
					return reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, &corev1.ConfigMap{})
				})
			},
			want: []string{
				"a mistake in step Database.License: objects of kind ConfigMap are tracked and not watched",
				"bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))",
			},
		},
		"a paused object": {
			plant: func(n *night) {
				done := func(context.Context, *databasev1.Database) error { return nil }
				n.program = &reconcilers.Paused[*databasev1.Database]{Name: "Freeze", Reconciler: doing("Work", done)}
			},
			change: func(db *databasev1.Database) {
				db.Annotations = map[string]string{reconcilers.AnnotationPaused: "until Friday"}
			},
			want: []string{"  Halted  ", "halted in step Database.Freeze: paused: until Friday"},
		},
		"a field that the API server does not know": {
			plant: func(n *night) {
				n.program = doing("Child", func(ctx context.Context, db *databasev1.Database) error {
					child := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{}, "date": "misspelled"}}
					child.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
					child.SetNamespace(db.Namespace)
					child.SetName("child")
					return client.IgnoreAlreadyExists(reconcilers.RetrieveConfigOrDie(ctx).Create(ctx, child))
				})
			},
			want: []string{"the API server has not stored date of ConfigMap NAMESPACE/child"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNight(t)
			if tc.plant != nil {
				tc.plant(n)
			}
			n.start()
			db := newDatabase("shop")
			if tc.change != nil {
				tc.change(db)
			}
			n.Add(db)
			if tc.then != nil {
				tc.then(n, db)
			}
			n.says(tc.want...)
		})
	}
}

func newDatabase(name string) *databasev1.Database {
	return &databasev1.Database{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       databasev1.DatabaseSpec{Replicas: new(int32(1)), Storage: resource.MustParse("1Gi")},
	}
}

// says waits until "trueup why" prints all texts. NAMESPACE stands for the namespace of the test.
func (n *night) says(texts ...string) {
	n.Eventually(func() error {
		why := whyCommand()
		var out strings.Builder
		n.Must(why.flags.Parse([]string{"--url", n.console.URL, "database", n.Namespace + "/shop"}))
		if err := why.run(n.Context(), &out, io.Discard); err != nil {
			out.WriteString(err.Error()) // the controller has not seen the Database
		}
		printed := strings.ReplaceAll(out.String(), n.Namespace, "NAMESPACE")
		for _, text := range texts {
			if !strings.Contains(printed, text) {
				return fmt.Errorf("trueup why does not print %q:\n%s", text, printed)
			}
		}
		return nil
	})
}
