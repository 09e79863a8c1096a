// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestUser(t *testing.T) {
	cluster := ForTest(t, TestOptions{})
	existing := ForTest(t, TestOptions{Options: Options{Kubeconfig: cluster.KubeconfigPath(), Progress: io.Discard}})
	for name, env := range map[string]*Env{"by certificate": cluster, "by impersonation": existing} {
		t.Run(name, func(t *testing.T) {
			user := env.User(t, "alice", "people", "readers")
			if cert := user.RESTConfig().CertData; name == "by certificate" && cmp.Equal(cert, env.RESTConfig().CertData) {
				t.Error("the user has the administrator's certificate")
			}
			fromFile, err := loadConfig(user.KubeconfigPath())
			if err != nil {
				t.Fatal(err)
			}
			for from, config := range map[string]*rest.Config{"RESTConfig": user.RESTConfig(), "KubeconfigPath": fromFile} {
				review, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().Create(
					t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				want := []string{"people", "readers", "system:authenticated"}
				if got := review.Status.UserInfo; got.Username != "alice" || !cmp.Equal(got.Groups, want) {
					t.Errorf("%s: the user is %q in groups %q, want alice in %q", from, got.Username, got.Groups, want)
				}
			}
			checkRBAC(t, env, user)
		})
	}
}

// checkRBAC binds a Role to a group of the user: the user may do what it allows, and nothing else.
func checkRBAC(t *testing.T, env *Env, user *User) {
	admin, client := kubernetes.NewForConfigOrDie(env.RESTConfig()), kubernetes.NewForConfigOrDie(user.RESTConfig())
	list := func() error {
		_, err := client.CoreV1().ConfigMaps(env.Namespace).List(t.Context(), metav1.ListOptions{})
		return err
	}
	if err := list(); !apierrors.IsForbidden(err) {
		t.Errorf("list before the RoleBinding exists: error %v, want forbidden", err)
	}
	_, err := admin.RbacV1().Roles(env.Namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "read"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = admin.RbacV1().RoleBindings(env.Namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "read"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "read"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "readers"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "the RoleBinding is in effect", func() bool { return list() == nil })
	_, err = client.CoreV1().ConfigMaps(env.Namespace).Create(
		t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("create, which the Role does not allow: error %v, want forbidden", err)
	}
	masters := env.User(t, "root", "system:masters")
	secrets := kubernetes.NewForConfigOrDie(masters.RESTConfig()).CoreV1().Secrets("")
	if _, err := secrets.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a user in system:masters lists all Secrets: %v", err)
	}
}

func TestUser_errors(t *testing.T) {
	env := ForTest(t, TestOptions{})
	// The user of the test is not the administrator, and may not impersonate.
	user := env.User(t, "alice")
	powerless := &Sandbox{kubeconfig: user.KubeconfigPath()}
	for name, c := range map[string]struct {
		in     *Sandbox
		user   string
		groups []string
		want   string
	}{
		"no name":          {env.Sandbox, "", nil, "a name is required"},
		"empty group":      {env.Sandbox, "alice", []string{"a", ""}, "groups[1]: must not be empty"},
		"no impersonation": {powerless, "bob", nil, "cannot impersonate"},
		"no authorization": {&Sandbox{server: memoryServer{}}, "bob", nil, "the API in memory has no users"},
		"no kubeconfig":    {&Sandbox{kubeconfig: "/does/not/exist"}, "bob", nil, "/does/not/exist"},
		"no authority": {
			&Sandbox{kubeconfig: env.KubeconfigPath(), dir: "/does/not/exist"}, "bob", nil, "certificate authority",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := newUser(ctx, c.in, filepath.Join(t.TempDir(), "kubeconfig"), c.user, c.groups)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}
