// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/examples/database"
	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/backup"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/sandbox"
	rtesting "trueup.dev/testing"
)

func TestMain(m *testing.M) { apitest.Main(m) }

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), database.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// newEnv returns a namespace of a real Kubernetes API that calls the webhooks.
func newEnv(t *testing.T, setup ...func(context.Context, ctrl.Manager) error) *apitest.Env {
	t.Helper()
	t.Parallel()
	e := apitest.New(t, newScheme(t), sandbox.TestOptions{CRDs: []any{database.CRDs()}})
	e.ReleaseAtEnd(&databasev1.DatabaseList{})
	hooks := e.Webhooks(e, sandbox.WebhookOptions{Configurations: []any{database.Webhooks()}})
	e.Manager(e.RESTConfig(), ctrl.Options{WebhookServer: hooks.Server()}, append(setup, database.SetupWebhooks)...)
	e.Must(hooks.WaitUntilServed(e.Context()))
	return e
}

func newDatabase(name string) *databasev1.Database {
	return &databasev1.Database{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       databasev1.DatabaseSpec{Storage: resource.MustParse("1Gi")},
	}
}

func withBackup(db *databasev1.Database) {
	db.Spec.Backup = &databasev1.Backup{Image: "registry.example.com/pg-backup:1"}
}

func TestDefaults(t *testing.T) {
	e := newEnv(t)
	db := rtesting.With(newDatabase("shop"), withBackup, func(db *databasev1.Database) {
		db.Spec.Parameters = map[string]string{"Max_Connections": "200", "work_mem": "1MB"}
	})
	e.Add(db)
	want := databasev1.DatabaseSpec{
		Version: 18, Replicas: new(int32(1)), Storage: resource.MustParse("1Gi"),
		Parameters: map[string]string{"max_connections": "200", "work_mem": "1MB"},
		Backup:     &databasev1.Backup{Image: "registry.example.com/pg-backup:1", Target: "backups/" + e.Namespace + "/shop"},
	}
	if diff := cmp.Diff(want, db.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// Deletions that would lose data are rejected, whatever the options of the client.
func TestForegroundDeletion(t *testing.T) {
	e := newEnv(t, func(ctx context.Context, mgr ctrl.Manager) error {
		return database.SetupWithManager(ctx, mgr, database.Options{Backups: &backup.Fake{}})
	})
	tests := map[string]struct {
		db      *databasev1.Database
		options []client.DeleteOption
		refused bool
	}{
		"in the background": {db: rtesting.With(newDatabase("background"), withBackup)},
		"in the foreground": {
			db:      rtesting.With(newDatabase("foreground"), withBackup),
			options: []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationForeground)},
			refused: true,
		},
		"in the foreground, without backups": {
			db:      newDatabase("no-backups"),
			options: []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationForeground)},
		},
		"in the foreground, with the final backup skipped": {
			db: rtesting.With(newDatabase("skipped"), withBackup, func(db *databasev1.Database) {
				db.Annotations = map[string]string{databasev1.AnnotationSkipFinalBackup: "true"}
			}),
			options: []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationForeground)},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e.Add(tc.db)
			err := e.Delete(t.Context(), tc.db, tc.options...)
			if tc.refused {
				if !apierrs.IsForbidden(err) || !strings.Contains(err.Error(), "use --cascade=background") {
					t.Errorf("error = %v, want Forbidden and a message that names the annotation", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			e.WaitForDeletion(tc.db)
		})
	}
}

// A change without an effect causes a warning, which kubectl prints.
func TestStorageWarning(t *testing.T) {
	e := newEnv(t)
	db := newDatabase("shop")
	e.Add(db)
	warnings := &warnings{}
	cfg := rest.CopyConfig(e.RESTConfig())
	cfg.WarningHandlerWithContext = warnings
	c, err := client.New(cfg, client.Options{Scheme: newScheme(t)})
	e.Must(err)
	db.Labels = map[string]string{"team": "a"}
	e.Must(c.Update(t.Context(), db))
	db.Spec.Storage = resource.MustParse("2Gi")
	e.Must(c.Update(t.Context(), db))
	want := []string{"spec.storage: the size of existing volumes cannot change from 1Gi to 2Gi"}
	if diff := cmp.Diff(want, warnings.texts); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// warnings collects warnings of the API server.
type warnings struct{ texts []string }

func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.texts = append(w.texts, text)
}
