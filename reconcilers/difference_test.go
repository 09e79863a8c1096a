// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"trueup.dev/internal/testkit/fixture"
	rtesting "trueup.dev/testing"
)

// lineOf returns the part of a log line that starts with a message.
func lineOf(log, message string) string {
	for line := range strings.SplitSeq(log, "\n") {
		if at := strings.Index(line, `"msg"="`+message+`"`); at >= 0 {
			return line[at:]
		}
	}
	return ""
}

// documented checks that a guide shows a line of a log.
func documented(t *testing.T, guide, line string) {
	t.Helper()
	data, err := os.ReadFile("../docs/" + guide)
	wantErr(t, nil, err)
	for shown := range strings.Lines(string(data)) {
		if line != "" && strings.TrimSpace(shown) == line {
			return
		}
	}
	t.Errorf("the guide %s does not show this line:\n%s", guide, line)
}

// TestResourceReconciler_StatusDiffNamesConditions checks the log line of a status write.
func TestResourceReconciler_StatusDiffNamesConditions(t *testing.T) {
	log, lines := newLog(0)
	tc := rtesting.ReconcilerTestCase{
		Request: testRequest, StatusSubResourceTypes: hasStatus, Now: time.Now(),
		GivenObjects: objects{newResource(settled)},
		Metadata: syncing(func(ctx context.Context, r *fixture.Resource) {
			r.Status.MarkReady(ctx)
			r.Status.Fields = map[string]string{"token": "a secret"}
		}),
		ExpectStatusUpdates: objects{newResource(settled, func(r *fixture.Resource) {
			r.Status.MarkReady(t.Context())
			r.Status.Fields = map[string]string{"token": "a secret"}
		})},
		ExpectEvents: statusUpdated,
		Prepare: func(_ *testing.T, ctx context.Context, _ *rtesting.ReconcilerTestCase) (context.Context, error) {
			return withLog(ctx, log), nil
		},
	}
	tc.Run(t, scheme, resourceFactory)
	documented(t, "status.md", lineOf(lines.all(), "updating status"))
	lacks(t, lines.all(), "a secret")
}
