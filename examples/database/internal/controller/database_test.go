// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/backup"
	"trueup.dev/internal/testkit/apitest"
	rtesting "trueup.dev/testing"
)

func TestDatabase_becomesReady(t *testing.T) {
	e := newEnv(t)
	e.startController()
	e.Add(rtesting.With(newDatabase(), withBackup, withReplicas(2)))
	db := e.ready("shop")

	conditions := map[string]string{}
	for _, c := range db.Status.Conditions {
		conditions[c.Type] = string(c.Status) + " " + c.Reason
	}
	if diff := cmp.Diff(map[string]string{
		"Ready":                 "True Ready",
		"CertificateReady":      "True NotNeeded",
		"ConfigurationReady":    "True Current",
		"CredentialsReady":      "True Current",
		"ServiceReady":          "True Current",
		"StatefulSetReady":      "True RolledOut",
		"DisruptionBudgetReady": "True Current",
		"BackupReady":           "True Current",
		"BackupAccountReady":    "True Ready",
	}, conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	got := databasev1.DatabaseStatus{
		Endpoint: db.Status.Endpoint, SecretName: db.Status.SecretName, ReadyReplicas: db.Status.ReadyReplicas,
	}
	want := databasev1.DatabaseStatus{
		Endpoint: "shop." + e.Namespace + ".svc:5432", SecretName: "shop-credentials", ReadyReplicas: 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	for name, child := range map[string]client.Object{
		"shop-config": &corev1.ConfigMap{}, "shop-credentials": &corev1.Secret{}, "shop-pods": &corev1.Service{},
		"shop": &corev1.Service{}, "shop-backup": &batchv1.CronJob{},
	} {
		wantOwned(t, db, read(e, child, name))
	}
	set := read(e, &appsv1.StatefulSet{}, "shop")
	wantOwned(t, db, set)
	if set.Status.AvailableReplicas != 2 || set.Status.ObservedGeneration != set.Generation {
		t.Errorf("the Database is ready, but its StatefulSet is not: %+v", set.Status)
	}
	budget := read(e, &policyv1.PodDisruptionBudget{}, "shop")
	wantOwned(t, db, budget)
	apitest.Until(e.Env, budget, func(budget *policyv1.PodDisruptionBudget) error {
		if budget.Status.ExpectedPods != 2 {
			return fmt.Errorf("the budget selects %d pods, want 2", budget.Status.ExpectedPods)
		}
		return nil
	})
}

func wantOwned(t *testing.T, db *databasev1.Database, child client.Object) {
	t.Helper()
	if !metav1.IsControlledBy(child, db) || child.GetLabels()[databasev1.LabelDatabase] != db.Name {
		t.Errorf("%T %s has owners %v and labels %v", child, child.GetName(), child.GetOwnerReferences(), child.GetLabels())
	}
}

// Optional children are created and deleted as needed.
func TestDatabase_optionalChildren(t *testing.T) {
	e := newEnv(t)
	e.startController()
	db := newDatabase()
	e.Add(db)
	e.ready("shop")
	optional := func() []client.Object {
		budget, job := &policyv1.PodDisruptionBudget{}, &batchv1.CronJob{}
		budget.Name, job.Name = "shop", "shop-backup"
		return []client.Object{budget, job}
	}
	absent := func() {
		t.Helper()
		for _, object := range optional() {
			if err := e.Read(object); !apierrs.IsNotFound(err) {
				t.Errorf("%T: error = %v, want NotFound", object, err)
			}
		}
	}
	absent()
	apitest.Change(e.Env, db, func(db *databasev1.Database) {
		withBackup(db)
		db.Spec.Replicas = new(int32(2))
	})
	e.ready("shop")
	for _, object := range optional() {
		e.Must(e.Read(object))
	}
	apitest.Change(e.Env, db, func(db *databasev1.Database) {
		db.Spec.Backup.Schedule, db.Spec.Replicas = "", new(int32(1))
	})
	e.ready("shop")
	absent()
}

// The password is generated once: restarts, other versions and repairs keep it.
func TestDatabase_passwordNeverChanges(t *testing.T) {
	e := newEnv(t)
	stop := e.startController()
	db := newDatabase()
	e.Add(db)
	e.ready("shop")
	secret := read(e, &corev1.Secret{}, "shop-credentials")
	password := string(secret.Data["password"])
	if len(password) < 20 {
		t.Fatalf("the password has %d characters", len(password))
	}
	same := func(when string) {
		t.Helper()
		e.ready("shop")
		if got := string(read(e, &corev1.Secret{}, "shop-credentials").Data["password"]); got != password {
			t.Errorf("%s, the password is different", when)
		}
	}

	stop()
	e.startController()
	apitest.Change(e.Env, db, func(db *databasev1.Database) { db.Spec.Parameters = map[string]string{"work_mem": "1MB"} })
	same("after a restart")

	apitest.Change(e.Env, secret, func(secret *corev1.Secret) { secret.Labels = nil })
	apitest.Until(e.Env, secret, func(secret *corev1.Secret) error {
		if secret.Labels[databasev1.LabelDatabase] != "shop" {
			return errors.New("the labels are not repaired")
		}
		return nil
	})
	same("after a repair")

	secret.Data["password"] = []byte("guess")
	if err := e.Update(t.Context(), secret); !apierrs.IsInvalid(err) {
		t.Errorf("to change the password: error = %v, want Invalid", err)
	}
	same("after an attempt to change it")
}

// A changed configuration or certificate restarts the servers; changes of other clients to the pod template stay.
func TestDatabase_restartsServers(t *testing.T) {
	e := newEnv(t)
	e.startController()
	db := rtesting.With(newDatabase(), withTLS)
	e.Add(newCertificate("first"), db)
	e.ready("shop")
	hash := func() string {
		return read(e, &appsv1.StatefulSet{}, "shop").Spec.Template.Annotations[databasev1.AnnotationConfigHash]
	}
	hashes := map[string]bool{hash(): true}
	changed := func(what string) {
		t.Helper()
		e.Eventually(func() error {
			if got := hash(); got == "" || hashes[got] {
				return fmt.Errorf("the servers did not restart for %s: hash %q", what, got)
			}
			return nil
		})
		hashes[hash()] = true
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop-0"}}
		apitest.Until(e.Env, pod, func(pod *corev1.Pod) error {
			if pod.Annotations[databasev1.AnnotationConfigHash] != hash() {
				return fmt.Errorf("pod %s runs without %s", pod.Name, what)
			}
			return nil
		})
		e.ready("shop")
	}
	apitest.Change(e.Env, newCertificate(""), func(secret *corev1.Secret) { secret.Data["tls.crt"] = []byte("second") })
	changed("a new certificate")
	set := read(e, &appsv1.StatefulSet{}, "shop")
	apitest.Change(e.Env, set, func(set *appsv1.StatefulSet) {
		set.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = "now"
	})
	apitest.Change(e.Env, db, func(db *databasev1.Database) { db.Spec.Parameters = map[string]string{"work_mem": "1MB"} })
	changed("a parameter")
	if read(e, set, "shop").Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] != "now" {
		t.Error("the annotation of kubectl rollout restart was removed")
	}
}

// newCertificate returns the TLS Secret that [withTLS] names.
func newCertificate(content string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "shop-tls"},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{"tls.crt": []byte(content), "tls.key": []byte("key of " + content)},
	}
}

// Without the TLS Secret nothing is created. The Secret is not owned: it stays when the Database is deleted.
func TestDatabase_waitsForItsCertificate(t *testing.T) {
	e := newEnv(t)
	e.startController()
	db := rtesting.With(newDatabase(), withTLS)
	e.Add(db)
	got := e.condition("shop", databasev1.ConditionReady, metav1.ConditionFalse, "SecretNotFound")
	message := got.Status.GetCondition(databasev1.ConditionReady).Message
	if message != `Secret "shop-tls" does not exist` {
		t.Errorf("message = %q", message)
	}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	if err := e.Read(set); !apierrs.IsNotFound(err) {
		t.Errorf("StatefulSet: error = %v, want NotFound", err)
	}

	e.Add(newCertificate("first"))
	e.ready("shop")
	e.Must(e.Delete(t.Context(), db))
	e.WaitForDeletion(db)
	if secret := read(e, &corev1.Secret{}, "shop-tls"); len(secret.OwnerReferences) != 0 {
		t.Errorf("the TLS Secret has owners: %v", secret.OwnerReferences)
	}
}

// Volumes keep their size. The condition reports it, and all other changes are applied.
func TestDatabase_refusesAStorageChange(t *testing.T) {
	e := newEnv(t)
	e.startController()
	db := newDatabase()
	e.Add(db)
	e.ready("shop")
	apitest.Change(e.Env, db, func(db *databasev1.Database) {
		db.Spec.Storage, db.Spec.Replicas = resource.MustParse("2Gi"), new(int32(2))
	})
	got := e.condition("shop", databasev1.ConditionReady, metav1.ConditionFalse, "StorageChangeRefused")
	message := "the volumes have 1Gi, and the volumes of a StatefulSet cannot change to 2Gi"
	if diff := cmp.Diff(message, got.Status.GetCondition(databasev1.ConditionReady).Message); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if set := read(e, &appsv1.StatefulSet{}, "shop"); *set.Spec.Replicas != 2 {
		t.Errorf("the StatefulSet has %d replicas, want 2", *set.Spec.Replicas)
	}
	apitest.Change(e.Env, db, func(db *databasev1.Database) { db.Spec.Storage = resource.MustParse("1024Mi") })
	e.ready("shop")
}

// A Database that is being deleted stays, with its servers, until the final backup is taken. The garbage collector
// deletes the rest.
func TestDatabase_finalBackup(t *testing.T) {
	e := newEnv(t)
	e.startController()
	db := rtesting.With(newDatabase(), withBackup)
	e.Add(db)
	db = e.ready("shop")
	e.backups.FailWith(errors.New("the bucket is full"))
	e.Must(e.Delete(t.Context(), db))
	got := e.condition("shop", databasev1.ConditionBackupReady, metav1.ConditionFalse, "FinalBackupFailed")
	if message := got.Status.GetCondition(databasev1.ConditionReady).Message; message != "the bucket is full" {
		t.Errorf("message = %q", message)
	}
	if set := read(e, &appsv1.StatefulSet{}, "shop"); set.DeletionTimestamp != nil || set.Status.AvailableReplicas != 1 {
		t.Errorf("the servers were deleted before the final backup: %+v", set.Status)
	}

	e.backups.FailWith(nil)
	e.WaitForDeletion(db)
	want := []backup.Request{{
		ID: string(db.UID), Source: db.Status.Endpoint, Target: "backups/" + e.Namespace + "/shop",
	}}
	if diff := cmp.Diff(want, e.backups.Taken()); diff != "" {
		t.Errorf("final backups (-want +got):\n%s", diff)
	}
	if target, found, err := e.backups.Account(t.Context(), string(db.UID)); found || err != nil {
		t.Errorf("the account of the deleted Database still has the target %q, error %v", target, err)
	}
	for name, child := range map[string]client.Object{
		"shop-config": &corev1.ConfigMap{}, "shop-credentials": &corev1.Secret{}, "shop-pods": &corev1.Service{},
		"shop": &appsv1.StatefulSet{}, "shop-backup": &batchv1.CronJob{}, "shop-0": &corev1.Pod{},
	} {
		child.SetName(name)
		e.WaitForDeletion(child)
	}
}

// A final backup that can never succeed is skipped by the author, not by the controller.
func TestDatabase_skipsTheFinalBackup(t *testing.T) {
	e := newEnv(t)
	e.startController()
	db := rtesting.With(newDatabase(), withBackup)
	e.Add(db)
	e.ready("shop")
	e.backups.FailWith(errors.New("the bucket is full"))
	e.Must(e.Delete(t.Context(), db))
	e.condition("shop", databasev1.ConditionBackupReady, metav1.ConditionFalse, "FinalBackupFailed")
	apitest.Change(e.Env, db, func(db *databasev1.Database) {
		db.Annotations = map[string]string{databasev1.AnnotationSkipFinalBackup: "true"}
	})
	e.WaitForDeletion(db)
	if taken := e.backups.Taken(); len(taken) != 0 {
		t.Errorf("final backups = %v, want none", taken)
	}
}

// A Database that never had servers needs no final backup: it is deleted at once.
func TestDatabase_deletedBeforeItHadServers(t *testing.T) {
	e := newEnv(t)
	e.startController()
	db := rtesting.With(newDatabase(), withTLS, withBackup)
	e.Add(db)
	e.condition("shop", databasev1.ConditionReady, metav1.ConditionFalse, "SecretNotFound")
	e.Must(e.Delete(t.Context(), db))
	e.WaitForDeletion(db)
	if taken := e.backups.Taken(); len(taken) != 0 {
		t.Errorf("final backups = %v, want none", taken)
	}
}

// allowNoServers creates a quota that allows no StatefulSets.
func (e *env) allowNoServers() *corev1.ResourceQuota {
	e.Helper()
	return e.AddQuota("small", "count/statefulsets.apps", "0")
}

// A quota rejects the servers. The condition reports it, and they are created when the quota allows it.
func TestDatabase_reportsAQuota(t *testing.T) {
	e := newEnv(t)
	quota := e.allowNoServers()
	e.startController()
	e.Add(newDatabase())
	db := e.condition("shop", databasev1.ConditionReady, metav1.ConditionFalse, "Forbidden")
	want := `statefulsets.apps "shop" is forbidden: exceeded quota: small, requested: count/statefulsets.apps=1, ` +
		`used: count/statefulsets.apps=0, limited: count/statefulsets.apps=0`
	if diff := cmp.Diff(want, db.Status.GetCondition(databasev1.ConditionStatefulSetReady).Message); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}

	apitest.Change(e.Env, quota, func(quota *corev1.ResourceQuota) {
		quota.Spec.Hard["count/statefulsets.apps"] = resource.MustParse("1")
	})
	e.ready("shop")
}
