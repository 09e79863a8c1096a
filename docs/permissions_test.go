// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/converge"
	"trueup.dev/examples/database"
	"trueup.dev/examples/database/backup"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/graph"
	"trueup.dev/graph/rbac"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

func setUpDatabase(ctx context.Context, mgr ctrl.Manager) error {
	return database.SetupWithManager(ctx, mgr, database.Options{Backups: backup.NewDirectory("backups")})
}

func graphMain() {
	scheme, setUp := runtime.NewScheme(), setUpDatabase
	// region permissions-main
	graph.Main(scheme, setUp)

	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: scheme})
	// endregion
	_, _ = mgr, err
}

var _ = graphMain

// region permissions-describe
func QuotaReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.SyncReconciler[*websitev1.Website]{
		Name:     "Quota",
		Sync:     checkQuota,
		Describe: func(n *graph.Node) { n.ReadsKind(&corev1.ResourceQuota{}) },
	}
}

// endregion

func checkQuota(context.Context, *websitev1.Website) error { return nil }

func checkRole(
	t *testing.T, user *rest.Config, role *rbacv1.ClusterRole, run func(*rest.Config), cases rtesting.ReconcilerTests,
	factory rtesting.ReconcilerFactory, scenario converge.Scenario,
) {
	t.Helper()
	scheme, setUp := runtime.NewScheme(), setUpDatabase
	// region permissions-check
	recorder := &rbac.Recorder{}

	// In a sandbox, which has RBAC: run the controller as a user that has only the role.
	user.Wrap(recorder.Wrap)
	run(user) // until the objects of the test are ready and deleted again

	// In test cases.
	cases.Run(t, scheme, factory, rtesting.RecordPermissions(recorder))

	// In all runs of a scenario, with and without faults.
	scenario.Permissions = recorder
	converge.Run(t, scenario)

	g, err := graph.Record(t.Context(), scheme, setUp)
	if err != nil {
		t.Fatal(err)
	}
	declared, err := rbac.Declared(g, rbac.Options{LeaderElection: true})
	if err != nil {
		t.Fatal(err)
	}
	rtesting.AssertPermissions(t, role.Rules, declared, recorder)
	// endregion
}

var _ = checkRole // the tests of examples/database run this

// The guide shows what the command prints.
func TestPermissions_Graph(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, database.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	g, err := graph.Record(t.Context(), scheme, setUpDatabase)
	if err != nil {
		t.Fatal(err)
	}
	if guide := readFile(t, "permissions.md"); !strings.Contains(guide, "```text\n"+g.Text()+"```\n") {
		t.Errorf("permissions.md must contain this tree:\n%s", g.Text())
	}
	described := graph.Of(&reconcilers.ResourceReconciler[*websitev1.Website]{
		Config: reconcilers.Config{}, Reconciler: QuotaReconciler(),
	})
	if !strings.Contains(described.Text(), "Quota (reconcilers.SyncReconciler) · reads ResourceQuota") {
		t.Errorf("graph:\n%s", described.Text())
	}
}
