// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge"
	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/backup"
	"trueup.dev/examples/database/internal/controller"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// updates makes a step one of the first release, which updated all children.
func updates[C client.Object, L client.ObjectList](step subReconcile, merge func(current, desired C)) subReconcile {
	child := step.(*reconcilers.ChildReconciler[*databasev1.Database, C, L])
	child.ChildObjectManager, child.MergeBeforeUpdate = nil, merge
	return child
}

// firstRelease is the controller of the first release: it had another finalizer, no PodDisruptionBudget and no account
// at the backup system, and updated all children under the name of its binary.
func firstRelease(c reconcilers.Config, backups backup.System) *reconcilers.ResourceReconciler[*databasev1.Database] {
	c.FieldOwner = "database"
	return &reconcilers.ResourceReconciler[*databasev1.Database]{
		Name: "Database",
		Reconciler: &reconcilers.WithFinalizer[*databasev1.Database]{
			Finalizer: databasev1.FormerFinalizer,
			Reconciler: reconcilers.Sequence[*databasev1.Database]{
				controller.FinalBackupReconciler(backups, time.Second),
				controller.CertificateReconciler(),
				updates[*corev1.ConfigMap, *corev1.ConfigMapList](controller.ConfigurationReconciler(),
					func(current, desired *corev1.ConfigMap) {
						current.Labels = reconcilers.MergeMaps(current.Labels, desired.Labels)
						current.Data, current.BinaryData = desired.Data, nil
					}),
				controller.CredentialsReconciler(rand.Text),
				controller.PodsServiceReconciler(),
				controller.ServiceReconciler(),
				controller.StatefulSetReconciler(),
				updates[*batchv1.CronJob, *batchv1.CronJobList](controller.ScheduleReconciler(),
					func(current, desired *batchv1.CronJob) {
						current.Labels = reconcilers.MergeMaps(current.Labels, desired.Labels)
						desired.Spec.Suspend = current.Spec.Suspend
						current.Spec = desired.Spec
					}),
			},
		},
		SyncStatusDuringFinalization: true,
		Config:                       c,
	}
}

// The present version takes over from the first release at any point, also while a Database is being deleted: each has
// its final backup, and keeps its password.
func TestUpgrade_fromFirstRelease(t *testing.T) {
	if raceDetector || testing.Short() {
		t.Skip("tries thousands of schedules, without the race detector: with -short, TestUpgrade_takesOverChildren")
	}
	t.Parallel()
	current := withFinalBackups(t)
	current.Steps = converge.Lifecycle(inDefault(rtesting.With(newDatabase(), withBackup)))
	current.NoRollback = "the first release does not remove the finalizer of the present version"
	old := current
	old.Setup = func(mgr ctrl.Manager) error {
		c := reconcilers.NewConfig(mgr, &databasev1.Database{}, 10*time.Hour)
		return firstRelease(c, cloudBackups{converge.EnvOf(mgr).Cloud}).SetupWithManager(t.Context(), mgr)
	}
	converge.Upgrade(t, old, current)
}

// The children of the first release are taken over with one request each, without a conflict, and then belong to the
// present version. What another client owns stays.
func TestUpgrade_takesOverChildren(t *testing.T) {
	e := newEnv(t)
	stop := e.Manager(e.RESTConfig(), ctrl.Options{}, func(ctx context.Context, mgr ctrl.Manager) error {
		c := reconcilers.NewConfig(mgr, &databasev1.Database{}, 10*time.Hour)
		return firstRelease(c, e.backups).SetupWithManager(ctx, mgr)
	})
	db := rtesting.With(newDatabase(), withBackup)
	e.Add(db)
	e.condition("shop", databasev1.ConditionBackupReady, metav1.ConditionTrue, "Current")
	e.condition("shop", databasev1.ConditionStatefulSetReady, metav1.ConditionTrue, "RolledOut")
	stop()
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"a"}}}`))
	e.Must(e.Patch(t.Context(), read(e, &corev1.ConfigMap{}, "shop-config"), label, client.FieldOwner("kubectl")))

	stop = e.startController()
	e.ready("shop")
	// The CronJob also has a new environment variable.
	want := map[string]int{"configmaps/shop-config": 1, "cronjobs/shop-backup": 2}
	if diff := cmp.Diff(want, e.writes.take()); diff != "" {
		t.Errorf("writes after the upgrade (-want +got):\n%s", diff)
	}
	managers := func(child client.Object) (managers []string) {
		for _, entry := range child.GetManagedFields() {
			managers = append(managers, entry.Manager+" "+string(entry.Operation)+" "+entry.Subresource)
		}
		slices.Sort(managers)
		return managers
	}
	for name, tc := range map[string]struct {
		child client.Object
		want  []string
	}{
		"shop-config": {&corev1.ConfigMap{}, []string{"kubectl Update ", fieldOwner + " Apply "}},
		"shop-backup": {&batchv1.CronJob{}, []string{fieldOwner + " Apply "}},
	} {
		if diff := cmp.Diff(tc.want, managers(read(e, tc.child, name))); diff != "" {
			t.Errorf("field managers of %s (-want +got):\n%s", name, diff)
		}
	}

	stop()
	e.startController()
	apitest.Change(e.Env, db, func(db *databasev1.Database) { db.Spec.Parameters = map[string]string{"work_mem": "1MB"} })
	e.ready("shop")
	want = map[string]int{"configmaps/shop-config": 1, "statefulsets/shop": 1}
	if diff := cmp.Diff(want, e.writes.take()); diff != "" {
		t.Errorf("writes after a restart and a change (-want +got):\n%s", diff)
	}
	if team := read(e, &corev1.ConfigMap{}, "shop-config").Labels["team"]; team != "a" {
		t.Errorf("the label of another client is %q, want a", team)
	}
}
