// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	userTimeout  = 30 * time.Second
	userValidity = 24 * time.Hour
)

// User is a user of the API without the rights of the administrator. Its methods are safe for concurrent use.
type User struct {
	config     *rest.Config
	kubeconfig string
}

// RESTConfig returns a configuration that authenticates as the user, without client-side rate limiting. Each call
// returns a copy that the caller may change.
func (u *User) RESTConfig() *rest.Config { return rest.CopyConfig(u.config) }

// KubeconfigPath returns the absolute path of a kubeconfig file of the user, for kubectl and other programs. The file
// is removed at the end of the test.
func (u *User) KubeconfigPath() string { return u.kubeconfig }

// User returns a user with a name and groups. The user may do what RBAC allows the name, the groups and the group
// system:authenticated, which every user has: create a RoleBinding first, or let the test show what is forbidden. A
// user in the group system:masters may do everything.
//
// For a control plane of this package, the user gets a client certificate that is valid for 24 hours. In an existing
// cluster the administrator's credentials impersonate the user, which the administrator must be allowed to do: the
// kubeconfig has the administrator's credentials then, and audit logs show both names. The API in memory has no users.
// If User fails, it ends t.
func (e *Env) User(t testing.TB, name string, groups ...string) *User {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), userTimeout)
	defer cancel()
	u, err := newUser(ctx, e.Sandbox, filepath.Join(t.TempDir(), "kubeconfig"), name, groups)
	if err != nil {
		t.Fatal(orDeath(e.Sandbox, fmt.Errorf("sandbox: user %q: %w", name, err)))
	}
	return u
}

func newUser(ctx context.Context, s *Sandbox, file, name string, groups []string) (*User, error) {
	if name == "" {
		return nil, errors.New("a name is required")
	}
	if _, ok := s.server.(memoryServer); ok {
		return nil, errors.New("the API in memory has no users and no authorization; set Options.Backend to ControlPlane")
	}
	if i := slices.Index(groups, ""); i >= 0 {
		return nil, fmt.Errorf("groups[%d]: must not be empty", i)
	}
	kubeconfig, err := clientcmd.LoadFromFile(s.KubeconfigPath())
	if err != nil {
		return nil, err
	}
	if err := clientcmdapi.MinifyConfig(kubeconfig); err != nil {
		return nil, err
	}
	if err := clientcmdapi.FlattenConfig(kubeconfig); err != nil {
		return nil, err
	}
	auth := kubeconfig.AuthInfos[kubeconfig.Contexts[kubeconfig.CurrentContext].AuthInfo]
	if s.Dir() == "" {
		auth.Impersonate, auth.ImpersonateGroups = name, groups
	} else {
		certificate, key, err := clientCertificate(filepath.Join(s.Dir(), "pki"), name, groups)
		if err != nil {
			return nil, err
		}
		*auth = clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	}
	if err := clientcmd.WriteToFile(*kubeconfig, file); err != nil {
		return nil, err
	}
	config, err := loadConfig(file)
	if err != nil {
		return nil, err
	}
	if err := checkUser(ctx, config, name); err != nil {
		return nil, err
	}
	return &User{config: config, kubeconfig: file}, nil
}

// checkUser returns an error if the API does not know the user by the name. A test of what is forbidden would pass or
// fail for another reason then.
func checkUser(ctx context.Context, config *rest.Config, name string) error {
	client, err := authenticationv1client.NewForConfig(config)
	if err != nil {
		return err
	}
	review, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking the API for the name of the user: %w", err)
	}
	if got := review.Status.UserInfo.Username; got != name {
		return fmt.Errorf("the API authenticates %q instead", got)
	}
	return nil
}

// clientCertificate returns a certificate and its key, in PEM, that the control plane's authority in the directory pki
// has signed for a user.
func clientCertificate(pki, name string, groups []string) (certificate, key []byte, err error) {
	authority, err := tls.LoadX509KeyPair(filepath.Join(pki, "ca.crt"), filepath.Join(pki, "ca.key"))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the control plane's certificate authority: %w", err)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name, Organization: groups},
		NotBefore:    now.Add(-time.Hour), // clocks of containers may differ slightly
		NotAfter:     now.Add(userValidity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority.Leaf, private.Public(), authority.PrivateKey)
	if err != nil {
		return nil, nil, err
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	return pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: der}), key, err
}
