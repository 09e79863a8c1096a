// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/converge"
)

// unfenced hides from the reconcilers that the manager has a leader election.
type unfenced struct{ ctrl.Manager }

func (m unfenced) Unwrap() ctrl.Manager { return m.Manager }

// withStandby runs a scenario in two replicas, one of which is the leader. Processes are paused for three times as long
// as the Lease lasts.
func withStandby(s converge.Scenario, wrap func(ctrl.Manager) ctrl.Manager) converge.Scenario {
	setUp := s.Setup
	s.Setup = func(mgr ctrl.Manager) error {
		if err := converge.ApplyOptions(mgr, ctrl.Options{
			LeaderElection: true, LeaderElectionID: "fixture", LeaderElectionNamespace: metav1.NamespaceDefault,
			LeaseDuration: new(2 * time.Hour), RenewDeadline: new(80 * time.Minute), RetryPeriod: new(50 * time.Minute),
		}); err != nil {
			return err
		}
		return setUp(wrap(mgr))
	}
	s.Programs = []converge.Program{{Name: "standby", Setup: s.Setup}}
	s.With = append(s.With, converge.FaultPause)
	return s
}

// TestLeaderElection proves that a leader that is paused for longer than its lease does no harm when it continues, and
// that it would without the fence of the lease.
func TestLeaderElection(t *testing.T) {
	scenario := under(t, func(converge.Env) sub { return newChild(generatedName) })
	t.Run("fenced", func(t *testing.T) {
		prove(t, withStandby(scenario, func(mgr ctrl.Manager) ctrl.Manager { return mgr }))
	})
	t.Run("not fenced", func(t *testing.T) {
		s := withStandby(scenario, func(mgr ctrl.Manager) ctrl.Manager { return unfenced{mgr} })
		report, err := converge.Check(t, s, converge.DefaultOptions())
		switch {
		case err != nil:
			t.Fatal(err)
		case report.Failure == nil:
			t.Fatalf("nothing was found: %s", report.Certificate)
		case report.Failure.Violation.Oracle != converge.OracleDuplicates:
			t.Errorf("found by %s:\n%s", report.Failure.Violation.Oracle, report.Failure)
		}
	})
}
