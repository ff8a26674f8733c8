// Airline data: the ticket, its passengers and their legs. All of it depends on what the acquirer asks for.

import type { Format } from '../formats.ts'
import { AN, amount, date } from '../formats.ts'
import type { Parameter, Parameters } from './parameter.ts'

const text = AN(255)
// What airlines and their customers are numbered by: tickets have 13 digits or more.
const number = AN(255)

const ticket = {
  totalTaxAmount: amount, totalFeesAmount: amount, totalFareAmount: amount, ticketIssueDate: date, ticketIssueAddress: text,
  thirdPartyBooking: text, bookingtype: text, ticketDeliveryMethod: text, bookingRefNum: number, agentName: text, agentCode: text,
} satisfies Readonly<Record<string, Format>>

const passenger = {
  type: text, name: text, ticketRestricted: text, ticketNumber: number, status: text, phone: number, frequentFlyerNumber: number, email: text,
  dob: text, checkDigit: text, // the specification writes dob without its mark for dates
} satisfies Readonly<Record<string, Format>>

const leg = {
  ticketNumber: number, taxAmount: amount, stopOverAllowed: text, restrictions: text, flightNumber: number, feesAmount: amount, fareBasis: text,
  fareAmount: amount, exchangeTicketNum: number, departureTaxAmount: amount, departureCountry: text, departureAirport: text, airlineName: text,
  airlineCode: text, departureTime: text, departureDate: date, arrivalCountry: text, arrivalAirport: text, arrivalTime: text, arrivalDate: date,
  couponNumber: number, classOfService: text, carrierCode: text,
} satisfies Readonly<Record<string, Format>>

export const airline = {
  ...rows('airline.', ticket),
  ...rows('airline.passengers[n].', passenger),
  ...rows('airline.passengers[n].legs[n].', leg),
} satisfies Parameters

function rows<Prefix extends string, Name extends string>(
  prefix: Prefix,
  formats: Readonly<Record<Name, Format>>,
): Parameters<`${Prefix}${Name}`> {
  const named: Record<string, Parameter> = {}
  for (const [name, format] of Object.entries<Format>(formats)) {
    named[prefix + name] = {
      format, echo: true, descriptive: true, needed: 'by some acquirers', ...(format === number && { cardNumbers: 'byChance' }),
    }
  }
  return named as Parameters<`${Prefix}${Name}`>
}
