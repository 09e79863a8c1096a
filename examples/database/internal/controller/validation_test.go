// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"trueup.dev/examples/database"
	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/internal/testkit/apitest"
	rtesting "trueup.dev/testing"
)

// The API server rejects invalid specs, and names the invalid field and the reason.
func TestSpec_validation(t *testing.T) {
	e := newEnv(t)
	parameter := func(name, value string) func(*databasev1.Database) {
		return func(db *databasev1.Database) { db.Spec.Parameters = map[string]string{name: value} }
	}
	tests := map[string]struct {
		change func(*databasev1.Database)
		field  string
		want   string // part of the message
	}{
		"valid":          {change: parameter("pg_stat.max", "it's\nfine")},
		"an old version": {change: func(db *databasev1.Database) { db.Spec.Version = 13 }, field: "spec.version", want: "14"},
		"too many":       {change: withReplicas(10), field: "spec.replicas", want: "less than or equal to 9"},
		"our parameter":  {change: parameter("ssl", "off"), field: "spec.parameters", want: "are set by the controller"},
		"no parameter":   {change: parameter("work mem", "1MB"), field: "spec.parameters", want: "only lower-case letters"},
		"TLS without a Secret": {
			change: func(db *databasev1.Database) { db.Spec.TLS = &databasev1.TLS{} },
			field:  "spec.tls.secretName", want: "at least 1 chars",
		},
		"a long name": {
			change: func(db *databasev1.Database) { db.Name = strings.Repeat("a", 41) },
			want:   "at most 40 of them",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			db := rtesting.With(newDatabase(), tc.change)
			db.Namespace = e.Namespace
			err := e.Create(t.Context(), db)
			if tc.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			var status apierrs.APIStatus
			if !apierrs.IsInvalid(err) || !errors.As(err, &status) {
				t.Fatalf("error = %v, want Invalid", err)
			}
			for _, cause := range status.Status().Details.Causes {
				if strings.TrimPrefix(cause.Field, "<nil>") == tc.field && strings.Contains(cause.Message, tc.want) {
					return
				}
			}
			t.Errorf("no cause for %q contains %q: %+v", tc.field, tc.want, status.Status().Details.Causes)
		})
	}
}

func TestSpec_versionDoesNotGoBack(t *testing.T) {
	e := newEnv(t)
	db := rtesting.With(newDatabase(), func(db *databasev1.Database) { db.Spec.Version = 17 })
	e.Add(db)
	db.Spec.Version = 18
	e.Must(e.Update(t.Context(), db))
	db.Spec.Version = 17
	if err := e.Update(t.Context(), db); !apierrs.IsInvalid(err) || !strings.Contains(err.Error(), "cannot go back") {
		t.Errorf("error = %v, want Invalid", err)
	}
}

// The API server validates the schedule, and the condition shows its answer. The other optional child is created.
func TestDatabase_reportsAnInvalidSchedule(t *testing.T) {
	e := newEnv(t)
	e.startController()
	db := rtesting.With(newDatabase(), withBackup, withReplicas(2), func(db *databasev1.Database) {
		db.Spec.Backup.Schedule = "at night"
	})
	e.Add(db)
	got := e.condition("shop", databasev1.ConditionReady, metav1.ConditionFalse, "Invalid")
	for condition, want := range map[string]metav1.ConditionStatus{
		databasev1.ConditionBackupReady:           metav1.ConditionFalse,
		databasev1.ConditionDisruptionBudgetReady: metav1.ConditionTrue,
	} {
		if c := got.Status.GetCondition(condition); c.Status != want {
			t.Errorf("%s is %s, want %s: %s", condition, c.Status, want, c.Message)
		}
	}
	apitest.Change(e.Env, db, func(db *databasev1.Database) { db.Spec.Backup.Schedule = "@daily" })
	e.ready("shop")
}

func TestSamples_becomeReady(t *testing.T) {
	e := newEnv(t)
	e.startController()
	files, err := fs.Glob(database.Samples(), "*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("samples = %v, error %v", files, err)
	}
	for _, file := range files {
		content, err := fs.ReadFile(database.Samples(), file)
		e.Must(err)
		db := &databasev1.Database{}
		e.Must(yaml.UnmarshalStrict(content, db))
		e.Add(db)
		e.ready(db.Name)
	}
}
