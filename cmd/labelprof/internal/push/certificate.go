// SPDX-License-Identifier: Apache-2.0

package push

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// certificate reports whether a server is not believed to be who it says it is.
func certificate(err error) bool {
	var (
		verify  *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
	)
	return errors.As(err, &verify) || errors.As(err, &unknown) || errors.As(err, &host) || errors.As(err, &invalid) || errors.As(err, &record)
}
