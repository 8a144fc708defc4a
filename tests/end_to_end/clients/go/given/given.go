// Package given has what both programs are asked and say, by tests/end_to_end/clients/streams.py.
package given

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"sync"
)

// Last is the payload of the message behind all others.
const Last = "end"

// Given is what a program is asked.
type Given struct {
	Version   string
	Address   *url.URL
	Authority string
	Name      string
	Count     int
	levels    string
}

// Read takes the arguments of the command line.
func Read() Given {
	arguments := os.Args[1:]
	if len(arguments) != 7 {
		Fail(fmt.Errorf("seven arguments are needed, not %d", len(arguments)))
	}
	count, err := strconv.Atoi(arguments[5])
	Fail(err)
	// Both clients know these schemes.
	schemes := map[string]string{"tcp": "tcp", "tls": "ssl", "websocket": "ws", "secure-websocket": "wss"}
	address, err := url.Parse(schemes[arguments[1]] + "://127.0.0.1:" + arguments[2] + "/mqtt")
	Fail(err)
	return Given{
		Version: arguments[0], Address: address, Authority: arguments[3], Name: arguments[4], Count: count,
		levels: arguments[6],
	}
}

// TLS trusts the given authority alone.
func (given Given) TLS() *tls.Config {
	certificate, err := os.ReadFile(given.Authority)
	Fail(err)
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(certificate) {
		Fail(fmt.Errorf("%s is no certificate", given.Authority))
	}
	return &tls.Config{RootCAs: authorities}
}

// QoS of a message.
func (given Given) QoS(number int) byte {
	return given.levels[number%len(given.levels)] - '0'
}

// Topic of a message.
func (given Given) Topic(number int) string {
	return fmt.Sprintf("%s/%d", given.Name, number%7)
}

var printing sync.Mutex

func say(line map[string]int) {
	printing.Lock()
	defer printing.Unlock()
	Fail(json.NewEncoder(os.Stdout).Encode(line))
}

// Acknowledged tells that a message has come to its end.
func Acknowledged(number int) {
	say(map[string]int{"acknowledged": number})
}

// Received tells of a message that came; true when it was the last one.
func Received(payload []byte, qos byte) bool {
	if string(payload) == Last {
		return true
	}
	number, err := strconv.Atoi(string(payload))
	Fail(err)
	say(map[string]int{"received": number, "qos": int(qos)})
	return false
}

// Fail ends the program where there is an error.
func Fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
