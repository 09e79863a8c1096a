// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/yaml"

	"trueup.dev/examples/database"
	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/backup"
	"trueup.dev/graph/rbac"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/sandbox"
)

func TestMain(m *testing.M) { apitest.Main(m) }

func buildScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), database.AddToScheme(scheme))
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme, err := buildScheme()
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

// env is a namespace of a real Kubernetes API, with a controller that sees only that namespace and has only the
// permissions of its role.
type env struct {
	*apitest.Env
	backups *backup.Fake
	role    *rbacv1.ClusterRole
	// requests records the permissions that the controller uses.
	requests rbac.Recorder
	writes   writes
}

// writes counts the requests that may write children, by resource and name. It is safe for concurrent use.
type writes struct {
	mu    sync.Mutex
	count map[string]int
}

func (w *writes) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		path := strings.Split(r.URL.Path, "/")
		kind, name := path[len(path)-2], path[len(path)-1]
		if r.Method != http.MethodGet && kind != "databases" && name != "status" && name != "events" {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.count == nil {
				w.count = map[string]int{}
			}
			w.count[kind+"/"+name]++
		}
		return next.RoundTrip(r)
	})
}

// take returns the counts since the last call.
func (w *writes) take() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := w.count
	w.count = nil
	return count
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	e := &env{
		Env:     apitest.New(t, newScheme(t), sandbox.TestOptions{CRDs: []any{database.CRDs()}}),
		backups: &backup.Fake{},
		role:    readRole(t),
	}
	e.role.Name = "database-manager-of-" + e.Namespace // tests may change it
	e.Must(e.Create(e.Context(), e.role))
	e.Cleanup(func() { e.Must(e.Delete(context.Background(), e.role)) })
	e.Must(e.Create(e.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "database-manager"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: e.role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: e.user()}},
	}))
	e.ReleaseAtEnd(&databasev1.DatabaseList{})
	return e
}

func readRole(t testing.TB) *rbacv1.ClusterRole {
	t.Helper()
	manifest, err := fs.ReadFile(database.RBAC(), "role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(manifest, role); err != nil {
		t.Fatal(err)
	}
	return role
}

func (e *env) user() string { return "database-manager-of-" + e.Namespace }

// startController starts the controller. It stops with the test, or earlier when the returned function is called.
func (e *env) startController() (stop func()) {
	e.Helper()
	return e.start(ctrl.Options{Controller: config.Controller{MaxConcurrentReconciles: 4}})
}

func (e *env) start(options ctrl.Options) (stop func()) {
	e.Helper()
	cfg := e.RESTConfig()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: e.user(), Groups: []string{"system:authenticated"}}
	cfg.Wrap(e.requests.Wrap)
	cfg.Wrap(e.writes.wrap)
	return e.Manager(cfg, options, func(ctx context.Context, mgr ctrl.Manager) error {
		return database.SetupWithManager(ctx, mgr, database.Options{Backups: e.backups, Poll: 10 * time.Millisecond})
	})
}

// condition waits until a Database has a condition, at its current generation unless it is being deleted, and returns
// the Database.
func (e *env) condition(name, condition string, status metav1.ConditionStatus, reason string) *databasev1.Database {
	e.Helper()
	db := &databasev1.Database{ObjectMeta: metav1.ObjectMeta{Name: name}}
	apitest.Until(e.Env, db, func(db *databasev1.Database) error {
		got := db.Status.GetCondition(condition)
		observed := db.DeletionTimestamp != nil || db.Status.ObservedGeneration == db.Generation
		if !observed || got == nil || got.Status != status || got.Reason != reason {
			return fmt.Errorf("%s: %s is not %s with reason %s: generation %d, status %+v",
				name, condition, status, reason, db.Generation, db.Status)
		}
		return nil
	})
	return db
}

func (e *env) ready(name string) *databasev1.Database {
	e.Helper()
	return e.condition(name, databasev1.ConditionReady, metav1.ConditionTrue, "Ready")
}

// read returns the object of a name.
func read[T client.Object](e *env, object T, name string) T {
	e.Helper()
	object.SetName(name)
	e.Must(e.Read(object))
	return object
}

func newDatabase() *databasev1.Database {
	return &databasev1.Database{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec:       databasev1.DatabaseSpec{Replicas: new(int32(1)), Storage: resource.MustParse("1Gi")},
	}
}

func withBackup(db *databasev1.Database) {
	db.Spec.Backup = &databasev1.Backup{Schedule: "0 3 * * *", Image: "registry.example.com/pg-backup:1"}
}

func withReplicas(n int32) func(*databasev1.Database) {
	return func(db *databasev1.Database) { db.Spec.Replicas = &n }
}

func withTLS(db *databasev1.Database) { db.Spec.TLS = &databasev1.TLS{SecretName: "shop-tls"} }
