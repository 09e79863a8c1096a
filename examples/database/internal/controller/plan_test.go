// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/backup"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/plan"
)

// command is the built main program with the kubeconfig of a test.
type command struct {
	*env
	path    string
	backups string // the directory of the backup system
}

func (c *command) run(args ...string) (stdout, stderr string, code int) {
	c.Helper()
	args = slices.Concat([]string{"-backups=" + c.backups}, args, []string{"--kubeconfig", c.KubeconfigPath()})
	cmd := exec.CommandContext(c.Context(), c.path, args...)
	var out, errors strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errors
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		c.Fatal(err)
	}
	// A backup would be a file in it.
	if files, err := fs.Glob(os.DirFS(c.backups), "backups"); err != nil || len(files) > 0 {
		c.Errorf("files were written: %v, error %v", files, err)
	}
	return out.String(), errors.String(), cmd.ProcessState.ExitCode()
}

// The command plan of the main program: before the controller runs, afterwards, and before a deletion.
func TestPlanCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("links the program: with -short, package plan and internal/tests/integration test plans")
	}
	e := newEnv(t)
	c := &command{e, filepath.Join(t.TempDir(), "database"), t.TempDir()}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", c.path, "../../cmd")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	db := newDatabase()
	withBackup(db)
	e.Add(db)

	text, stderr, code := c.run("plan", "databases", e.Namespace+"/shop")
	for _, want := range []string{
		"+ StatefulSet " + e.Namespace + "/shop\n", "+ CronJob ", "    data[password] = •••\n",
		"* outside of Kubernetes: create the BackupAccount of " + e.Namespace + "/shop\n",
		"Plan: 6 to create, 1 to update, nothing to delete, 1 outside of Kubernetes.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the plan does not contain %q:\n%s", want, text)
		}
	}
	if code != 3 || stderr != "" {
		t.Errorf("exit code %d, want 3: %s", code, stderr)
	}

	if files, err := os.ReadDir(c.backups); err != nil || len(files) > 0 {
		t.Errorf("the plan has created an account: %v, error %v", files, err)
	}

	stop := e.startController()
	e.ready("shop")
	stop()
	// The controller has created the account in the fake of the test.
	e.Must(backup.NewDirectory(c.backups).SetAccount(t.Context(), string(db.UID), "backups/"+e.Namespace+"/shop"))
	text, stderr, code = c.run("-enable-webhooks=false", "plan", "database", "shop", "-n", e.Namespace)
	want := "Planned requests: 1, with changes: 0, with errors: 0. Nothing is deleted.\n"
	if diff := cmp.Diff(want, text); diff != "" || code != 0 || stderr != "" {
		t.Errorf("exit code %d, %s, plan of a reconciled object (-want +got):\n%s", code, stderr, diff)
	}

	e.Must(e.Delete(e.Context(), db))
	apitest.Until(e.Env, db, func(db *databasev1.Database) error {
		if db.DeletionTimestamp == nil {
			return errors.New("not deleted yet")
		}
		return nil
	})
	text, stderr, code = c.run("plan", "-n", e.Namespace, "-o", "json", "Database")
	deleted := &plan.Plan{}
	if err := json.Unmarshal([]byte(text), deleted); err != nil || code != 3 || stderr != "" {
		t.Fatalf("exit code %d, error %v: %s\n%s", code, err, stderr, text)
	}
	var got []string
	for _, change := range deleted.Changes {
		got = append(got, string(change.Action)+" "+change.Kind)
	}
	if len(deleted.External) != 2 || !strings.HasPrefix(deleted.External[0], "take the backup") ||
		deleted.External[1] != fmt.Sprintf("delete the BackupAccount %s of %s/shop", db.UID, e.Namespace) {
		t.Errorf("effects outside of Kubernetes: %q", deleted.External)
	}
	want = "delete ConfigMap, delete Secret, delete Service, delete Service, delete StatefulSet, delete CronJob, " +
		"delete Database, delete EndpointSlice, delete EndpointSlice, delete Pod, delete ControllerRevision"
	if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}

	for _, bad := range []struct {
		args []string
		want string
	}{
		{[]string{"plan", "pods"}, `no controller watches "pods"`},
		{[]string{"plan", "database", "missing", "-n", e.Namespace}, `databases.database.trueup.dev "missing" not found`},
		{[]string{"plan", "-l", "a=b"}, "--selector requires a kind"},
		{[]string{"plan", "a", "b", "c"}, "at most a kind and a name"},
		{[]string{"plan", "--unknown"}, "unknown flag: --unknown"},
		{[]string{"plan", "-o", "yaml"}, "--output must be text or json"},
	} {
		out, stderr, code := c.run(bad.args...)
		if !strings.Contains(stderr, bad.want) || code != 1 || out != "" {
			t.Errorf("%q: exit code %d, %q, want 1 and %q", bad.args, code, stderr, bad.want)
		}
	}
	if help, _, code := c.run("plan", "--help"); code != 0 || !strings.Contains(help, "Exit codes") {
		t.Errorf("exit code %d, help:\n%s", code, help)
	}
}
