package convergence

import (
	"testing"
	"time"

	"trueup.dev/converge"
)

func TestZZ(t *testing.T) {
	s := under(t, func(converge.Env) sub { return newChild(fixedName) })
	blocker := config("child", "other")
	s.Steps = converge.Steps(
		converge.Apply(blocker), converge.Apply(newResource("one")), converge.Sleep(20*time.Millisecond), converge.Delete(blocker), converge.Settle(),
		converge.Delete(newResource("one")), converge.Settle(),
	)
	report, err := converge.Check(t, s, converge.Options{Recoveries: -1, Pairs: 1000, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if report.Failure != nil {
		t.Errorf("%s\nreplay: -converge.replay='%s'", report.Failure, report.Failure.Replay)
	}
	t.Log(report.Certificate)
}
