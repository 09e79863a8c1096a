// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"trueup.dev/converge"
	"trueup.dev/examples/database"
	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/backup"
	rtesting "trueup.dev/testing"
)

// cloudBackups is an external system of a scenario, in which each call can fail.
type cloudBackups struct{ cloud converge.Cloud }

func (b cloudBackups) Take(ctx context.Context, request backup.Request) (bool, error) {
	state, err := b.cloud.Get(ctx, request.ID)
	switch {
	case errors.Is(err, converge.ErrAbsent):
		return false, b.cloud.Put(ctx, request.ID, "running")
	case err != nil:
		return false, err
	case state == "running":
		return false, b.cloud.Put(ctx, request.ID, "complete")
	}
	return true, nil
}

func accountKey(id string) string { return "account-" + id }

func (b cloudBackups) Account(ctx context.Context, id string) (target string, found bool, err error) {
	target, err = b.cloud.Get(ctx, accountKey(id))
	if errors.Is(err, converge.ErrAbsent) {
		return "", false, nil
	}
	return target, err == nil, err
}

func (b cloudBackups) SetAccount(ctx context.Context, id, target string) error {
	return b.cloud.Put(ctx, accountKey(id), target)
}

func (b cloudBackups) DeleteAccount(ctx context.Context, id string) error {
	if err := b.cloud.Delete(ctx, accountKey(id)); !errors.Is(err, converge.ErrAbsent) {
		return err
	}
	return nil
}

// databaseScenario sets up the controller as a program does, in a cluster that rolls out StatefulSets.
func databaseScenario(t *testing.T) converge.Scenario {
	t.Helper()
	return converge.Scenario{
		Scheme: newScheme(t),
		For:    &databasev1.Database{},
		CRDs:   []client.Object{databaseCRD(t)},
		Roles:  converge.RolesOrDie("../../config/rbac/role.yaml"),
		World:  []converge.Actor{converge.StatefulSets(converge.BecomeReady)},
		Setup: func(mgr ctrl.Manager) error {
			env := converge.EnvOf(mgr)
			options := database.Options{Backups: cloudBackups{env.Cloud}, Poll: time.Second}
			return database.SetupWithManager(t.Context(), mgr, options)
		},
	}
}

// withFinalBackups is for scenarios in which a final backup is taken.
func withFinalBackups(t *testing.T) converge.Scenario {
	t.Helper()
	s := databaseScenario(t)
	s.Off = map[converge.Oracle]string{converge.OracleDeletion: "a final backup outlives its Database"}
	return s
}

func databaseCRD(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	manifest, err := fs.ReadFile(database.CRDs(), "database.trueup.dev_databases.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(manifest, crd)
	}
	if err != nil {
		t.Fatal(err)
	}
	return crd
}

// prove is converge.Run for parallel tests. With -short, it tries single faults only: each fault at the first request
// or event of each kind, and as many more as make 65,000 requests.
func prove(t *testing.T, s converge.Scenario) {
	t.Helper()
	if raceDetector {
		t.Skip("runs only without the race detector, which makes schedules ten times slower")
	}
	t.Parallel()
	if !testing.Short() {
		converge.Run(t, s)
		return
	}
	o := converge.DefaultOptions()
	o.SingleRequests, o.Recoveries, o.Pairs = 65_000, 0, 0
	report, err := converge.Check(t, s, o)
	switch {
	case err != nil:
		t.Fatal(err)
	case report.Failure != nil:
		t.Fatal(report.Failure)
	}
	t.Log(report.Certificate)
}

// inDefault sets the namespace of the scenarios.
func inDefault[T client.Object](obj T) T {
	obj.SetNamespace(metav1.NamespaceDefault)
	return obj
}

func TestConverge_lifecycle(t *testing.T) {
	db := inDefault(rtesting.With(newDatabase(), withBackup))
	s := withFinalBackups(t)
	s.Steps = converge.Lifecycle(db,
		func(db *databasev1.Database) {
			db.Spec.Replicas, db.Spec.Backup.Schedule = new(int32(2)), ""
			db.Spec.Parameters = map[string]string{"work_mem": "1MB"}
		},
	)
	prove(t, s)
}

func TestConverge_certificateComesAndChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("tries a thousand schedules: with -short, TestConverge_lifecycle remains")
	}
	db, certificate := inDefault(rtesting.With(newDatabase(), withTLS)), inDefault(newCertificate("first"))
	s := databaseScenario(t)
	s.Steps = converge.Steps(
		converge.Apply(db), converge.Settle(), // the certificate does not exist yet
		converge.Apply(certificate), converge.Settle(),
		converge.Change(certificate, func(secret *corev1.Secret) { secret.Data["tls.crt"] = []byte("second") }),
		converge.Settle(),
		converge.Delete(db), converge.Settle(),
	)
	prove(t, s)
}

func TestConverge_sameNameAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("tries more than a thousand schedules: with -short, TestConverge_lifecycle remains")
	}
	db := inDefault(rtesting.With(newDatabase(), withBackup))
	again := rtesting.With(db, func(db *databasev1.Database) { db.Spec.Parameters = map[string]string{"work_mem": "1MB"} })
	s := withFinalBackups(t)
	s.Steps = converge.Steps(
		converge.Apply(db), converge.Settle(), converge.Delete(db), converge.Settle(),
		converge.Apply(again), converge.Settle(), converge.Delete(again), converge.Settle(),
	)
	prove(t, s)
}

// Whatever users have wanted before, a database looks like a new one.
func TestConverge_states(t *testing.T) {
	if raceDetector || testing.Short() {
		t.Skip("tries many states, without the race detector: with -short, TestConverge_lifecycle changes specs")
	}
	t.Parallel()
	db := inDefault(rtesting.With(newDatabase(), withBackup))
	s := withFinalBackups(t)
	s.Steps = converge.Steps(converge.Apply(inDefault(newCertificate("first"))), converge.Apply(db))
	s.Space.Values = map[string][]any{"spec.tls": {databasev1.TLS{SecretName: "shop-tls"}}}
	const refused = "the volumes of a StatefulSet cannot change, which the condition reports"
	s.Space.HistoryDependent = []converge.HistoryDependent{
		{Object: &appsv1.StatefulSet{}, Field: "spec.volumeClaimTemplates", Reason: refused},
		{Object: db, Field: "status.conditions[type=StatefulSetReady]", Reason: refused},
		{Object: db, Field: "status.conditions[type=Ready]", Reason: refused},
	}
	converge.States(t, s)
}
