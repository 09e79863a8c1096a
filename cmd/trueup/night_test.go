// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"trueup.dev/internal/apitest"
	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
	"trueup.dev/sandbox"
)

// night is a namespace in which the controller of examples/database runs with a console, and one fault.
type night struct {
	*apitest.Env
	backups  backup.System
	recorder *recorder.Recorder
	console  *httptest.Server
	role     *rbacv1.ClusterRole
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
		return database.SetupWithManager(ctx, mgr, database.Options{Backups: n.backups, Poll: time.Second})
	})
}

// slow is a backup system that does not answer.
type slow struct{ backup.System }

func (slow) Take(ctx context.Context, _ backup.Request) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

// rewrite registers a webhook that writes another value into each ConfigMap each time.
func (n *night) rewrite() {
	const path = "/rewrite"
	hooks := n.Webhooks(n.TB, sandbox.WebhookOptions{Configurations: []any{
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "rewrite"},
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name:                    "rewrite.example.com",
				AdmissionReviewVersions: []string{"v1"},
				SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
				ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: new("https://localhost" + path)},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
					},
				}},
			}},
		},
	}})
	server := hooks.Server()
	written := atomic.Int64{}
	server.Register(path, &admission.Webhook{Handler: admission.HandlerFunc(
		func(context.Context, admission.Request) admission.Response {
			value := fmt.Sprint("# ", written.Add(1))
			return admission.Patched("", jsonpatch.NewOperation("add", "/data/"+configurationKey, value))
		},
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

// forbidServers removes the permission to create StatefulSets from the role.
func (n *night) forbidServers() {
	for i, rule := range n.role.Rules {
		if slices.Contains(rule.Resources, "statefulsets") {
			n.role.Rules[i].Verbs = slices.DeleteFunc(rule.Verbs, func(verb string) bool { return verb == "create" })
		}
	}
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
			plant: (*night).forbidServers,
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
			plant: func(n *night) { n.backups = slow{&backup.Fake{}} },
			change: func(db *databasev1.Database) {
				db.Spec.Backup = &databasev1.Backup{Schedule: "0 3 * * *", Image: "registry.example.com/pg-backup:1"}
			},
			then: func(n *night, db *databasev1.Database) {
				n.isReady(db)
				n.Must(n.Delete(n.Context(), db))
			},
			want: []string{
				"  Running  ", "running for ", "metadata.deletionTimestamp",
				"step     Database.WithFinalizer.0.FinalBackup  not finished\n",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNight(t)
			if tc.plant != nil {
				tc.plant(n)
			}
			n.start()
			db := &databasev1.Database{
				ObjectMeta: metav1.ObjectMeta{Name: "shop"},
				Spec:       databasev1.DatabaseSpec{Replicas: new(int32(1)), Storage: resource.MustParse("1Gi")},
			}
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

// says waits until "trueup why" prints all texts. NAMESPACE stands for the namespace of the test.
func (n *night) says(texts ...string) {
	n.Eventually(func() error {
		why := whyCommand()
		var out strings.Builder
		n.Must(why.flags.Parse([]string{"--url", n.console.URL, "database", n.Namespace + "/shop"}))
		if err := why.run(n.Context(), &out, io.Discard); err != nil {
			return err // the controller has not seen the Database
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
